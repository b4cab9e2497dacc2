"""A slow service for `cargo xtask soak triage`: python3 service.py answers|http MILLISECONDS PID

Answers each byte, or each HTTP request, after so many milliseconds, and ends with its client's process.
Prints the port that it listens to.
"""
import asyncio
import os
import sys

KIND, MS, PID = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok"


async def serve(reader, writer):
    try:
        while True:
            if KIND == "http":
                await reader.readuntil(b"\r\n\r\n")
                answer = ANSWER
            else:
                answer = await reader.readexactly(1)
            await asyncio.sleep(MS / 1000)
            writer.write(answer)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    while os.path.exists(f"/proc/{PID}"):
        await asyncio.sleep(0.2)


asyncio.run(main())
