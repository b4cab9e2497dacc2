// Twelve kinds of programs, three of each, for `cargo xtask soak triage`. The first argument names the
// program; it runs until it is killed. A comment after each name gives the expected first verdict,
// and the method that it must name, if any. Some look alike from outside.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

namespace Plights;

internal static class Program
{
    private const MethodImplOptions Apart = MethodImplOptions.NoInlining;

    private static readonly object Gate = new();
    private static readonly SemaphoreSlim Turn = new(1);
    private static double sum;
    private static volatile byte[] last = [];

    private static void Main(string[] args)
    {
        Console.WriteLine("READY");
        switch (args[0])
        {
            case "loop": Threads(1, Price); break; // cpu Price
            case "all-processors": Parallel.For(0, int.MaxValue, _ => Multiply()); break; // cpu Multiply
            case "busy-under-lock": Threads(1, Guarded); break; // cpu Guarded

            case "lock": Threads(6, Book); break; // lock-convoy Book
            case "semaphore": Threads(6, Enter); break; // lock-convoy Enter
            case "holder-sleeps": Threads(6, Write); break; // lock-convoy Write

            case "blocked-pool": Pool(Fetch); break; // pool-starved Fetch
            case "blocked-on-socket": Pool(Ask(Answers(100))); break; // pool-starved
            case "sleeping-pool": Pool(Nap); break; // pool-starved Nap

            case "pipe": Threads(1, Listen(Ticks())); break; // wait
            case "socket": Threads(1, Ask(Answers(100))); break; // wait
            case "child": Threads(1, Convert); break; // wait Convert

            case "wait": Threads(1, Fetch); break; // wait Fetch
            case "result": Threads(2, Result); break; // wait Result
            case "get-result": Threads(1, Got); break; // wait Got

            case "slow-service": Loops(8, Calls(HttpAnswers(300))); break; // wait
            case "slow-and-busy-service": Loops(4, CallsAndWork(HttpAnswers(400))); break; // wait
            case "few-slow-calls": Loops(2, Calls(HttpAnswers(900))); break; // wait

            case "links": Threads(1, Link); break; // gc
            case "collects": Collects(); break; // gc
            case "survivors": Threads(2, Survive); break; // gc

            case "arrays": Threads(1, Copy); break; // allocation
            case "strings": Threads(1, Concatenate); break; // allocation
            case "boxes": Threads(1, Box); break; // allocation

            case "list": Grow(ms: 20, () => kept.Add(new byte[150_000])); break; // growing-heap
            case "handlers": Grow(ms: 20, Subscribe); break; // growing-heap
            case "cache": Grow(ms: 20, Cache); break; // growing-heap

            case "throw": Threads(1, Parse); break; // exceptions
            case "throw-in-pool": Pool(ParseNumber); break; // exceptions
            case "throw-async": Loops(2, ThrowsAsync); break; // exceptions

            case "retry": Threads(1, Retry); break; // wait Retry
            case "slow-queue": SlowQueue(); break; // wait
            case "poll": Threads(1, Poll); break; // wait Poll

            case "idle": Consumers(); break; // idle nothing
            case "light-load": LightLoad(); break; // idle nothing
            case "full-cache": FullCache(); break; // idle nothing
            default: throw new ArgumentException(args[0]);
        }
        Thread.Sleep(Timeout.Infinite);
    }

    private static void Threads(int count, Action work)
    {
        for (int i = 0; i < count; i++) new Thread(() => { while (true) work(); }).Start();
    }

    // More work than threads, as a busy service has it.
    private static void Pool(Action work)
    {
        new Thread(() =>
        {
            while (true)
            {
                for (int i = 0; i < 10; i++)
                {
                    if (ThreadPool.PendingWorkItemCount < 500) ThreadPool.QueueUserWorkItem(_ => work());
                }
                Thread.Sleep(10);
            }
        }).Start();
    }

    private static void Loops(int count, Func<Task> work)
    {
        for (int i = 0; i < count; i++) _ = Task.Run(async () => { while (true) await work(); });
    }

    private static void Work(int microseconds)
    {
        long until = Stopwatch.GetTimestamp() + microseconds * Stopwatch.Frequency / 1_000_000;
        while (Stopwatch.GetTimestamp() < until) sum++;
    }

    [MethodImpl(Apart)]
    private static void Price()
    {
        for (int i = 1; i < 1_000_000; i++) sum += Math.Sqrt(i);
    }

    [MethodImpl(Apart)]
    private static void Multiply()
    {
        Span<double> row = stackalloc double[512];
        for (int i = 0; i < 2_000; i++)
        {
            for (int j = 0; j < row.Length; j++) row[j] = row[j] * 0.5 + i;
        }
        sum += row[7];
    }

    // No other thread wants the lock.
    [MethodImpl(Apart)]
    private static void Guarded()
    {
        lock (Gate)
        {
            for (int i = 1; i < 1_000; i++) sum += Math.Sqrt(i);
        }
    }

    [MethodImpl(Apart)]
    private static void Book()
    {
        lock (Gate) Work(2_000);
    }

    [MethodImpl(Apart)]
    private static void Enter()
    {
        Turn.Wait();
        Work(2_000);
        Turn.Release();
    }

    // As a logger with a slow disk does.
    [MethodImpl(Apart)]
    private static void Write()
    {
        lock (Gate) Thread.Sleep(5);
    }

    [MethodImpl(Apart)]
    private static void Fetch() => Slow().Wait();

    [MethodImpl(Apart)]
    private static void Result() => sum += Number().Result;

    [MethodImpl(Apart)]
    private static void Got() => sum += Number().GetAwaiter().GetResult();

    private static async Task Slow() => await Task.Delay(100);

    private static async Task<int> Number()
    {
        await Task.Delay(60);
        return 1;
    }

    [MethodImpl(Apart)]
    private static void Nap() => Thread.Sleep(100);

    // A service that answers each byte after a delay.
    private static IPEndPoint Answers(int ms) => new(IPAddress.Loopback, Serve("answers", ms));

    // A service that answers each HTTP request after a delay.
    private static Uri HttpAnswers(int ms) => new($"http://127.0.0.1:{Serve("http", ms)}/");

    // Starts a service in another process, and returns its port.
    private static int Serve(string kind, int ms)
    {
        string script = Environment.GetEnvironmentVariable("PLIGHTS_SERVICE")!;
        var start = new ProcessStartInfo("python3") { RedirectStandardOutput = true };
        foreach (object word in new object[] { script, kind, ms, Environment.ProcessId })
        {
            start.ArgumentList.Add(string.Create(CultureInfo.InvariantCulture, $"{word}"));
        }
        return int.Parse(Process.Start(start)!.StandardOutput.ReadLine()!, CultureInfo.InvariantCulture);
    }

    private static Action Ask(IPEndPoint service)
    {
        var clients = new ThreadLocal<Socket>(() =>
        {
            var socket = new Socket(SocketType.Stream, ProtocolType.Tcp);
            socket.Connect(service);
            return socket;
        });
        return () =>
        {
            var buffer = new byte[1];
            clients.Value!.Send(buffer);
            clients.Value!.Receive(buffer);
        };
    }

    private static Func<Task> Calls(Uri service)
    {
        var client = new HttpClient();
        return async () => sum += (await client.GetStringAsync(service)).Length;
    }

    private static Func<Task> CallsAndWork(Uri service)
    {
        Func<Task> call = Calls(service);
        return async () =>
        {
            await call();
            Work(20_000);
        };
    }

    private static StreamReader Ticks()
    {
        var start = new ProcessStartInfo("/bin/sh") { RedirectStandardOutput = true };
        start.ArgumentList.Add("-c");
        start.ArgumentList.Add("while sleep 0.2 && echo tick 2>/dev/null; do :; done");
        return Process.Start(start)!.StandardOutput;
    }

    private static Action Listen(StreamReader from) => () => sum += from.ReadLine()!.Length;

    [MethodImpl(Apart)]
    private static void Convert()
    {
        using Process child = Process.Start("/bin/sleep", "0.5");
        child.WaitForExit();
    }

    private sealed class Node
    {
        public Node? Next;
        public int Number;
    }

    private static void Link()
    {
        Node? first = null;
        for (int i = 0; i < 2_000_000; i++) first = new Node { Next = first, Number = i };
        GC.KeepAlive(first);
    }

    private static void Collects()
    {
        Node? first = null;
        for (int i = 0; i < 1_000_000; i++) first = new Node { Next = first, Number = i };
        while (true)
        {
            Work(3_000);
            GC.Collect();
            GC.KeepAlive(first);
        }
    }

    // Each object lives just long enough to be copied from generation to generation.
    private static void Survive()
    {
        var window = new Queue<object>();
        while (true)
        {
            window.Enqueue(new object[] { new Node(), new Node(), window.Count });
            if (window.Count > 400_000) window.Dequeue();
        }
    }

    private static void Copy()
    {
        for (int i = 0; i < 200; i++) last = new byte[8_000];
        Work(500);
    }

    private static void Concatenate()
    {
        string text = "";
        for (int i = 0; i < 2_000; i++) text += "line ";
        sum += text.Length;
    }

    private static void Box()
    {
        var numbers = Enumerable.Range(0, 10_000).Select(i => (object)(long)i).Where(number => number is long).ToList();
        sum += numbers.Count;
    }

    private static readonly List<byte[]> kept = new();
    private static event EventHandler? Changed;
    private static readonly Dictionary<string, string> cache = new();
    private static int next;

    private static void Grow(int ms, Action add)
    {
        while (true)
        {
            add();
            // The garbage that every request leaves.
            for (int i = 0; i < 300; i++) last = new byte[4_000];
            Thread.Sleep(ms);
        }
    }

    private static void Subscribe()
    {
        for (int i = 0; i < 20; i++)
        {
            var view = new byte[6_000];
            Changed += (_, _) => sum += view.Length;
        }
    }

    private static void Cache()
    {
        for (int i = 0; i < 500; i++) cache[$"key {next++}"] = new string('x', 100);
    }

    private static void Parse()
    {
        try
        {
            throw new FormatException("no number");
        }
        catch (FormatException)
        {
            sum++;
        }
    }

    private static void ParseNumber()
    {
        try
        {
            sum += int.Parse("12x", CultureInfo.InvariantCulture);
        }
        catch (FormatException)
        {
            sum++;
        }
    }

    private static async Task ThrowsAsync()
    {
        try
        {
            await Deep(4);
        }
        catch (InvalidOperationException)
        {
            sum++;
        }
    }

    private static async Task Deep(int depth)
    {
        await Task.Yield();
        if (depth == 0) throw new InvalidOperationException("deep down");
        await Deep(depth - 1);
    }

    [MethodImpl(Apart)]
    private static void Retry()
    {
        Thread.Sleep(20);
        Work(1_500);
    }

    // One thread consumes what another produces; the producer is slow because it sleeps.
    private static void SlowQueue()
    {
        var queue = new BlockingCollection<int>(1);
        Threads(1, () => { Thread.Sleep(15); Work(2_000); queue.Add(1); });
        Threads(1, () => { sum += queue.Take(); Work(3_000); });
    }

    [MethodImpl(Apart)]
    private static void Poll()
    {
        while (!File.Exists("/tmp/there-is-no-such-file")) Thread.Sleep(1);
    }

    private static void Consumers()
    {
        var queue = new BlockingCollection<int>();
        Threads(8, () => sum += queue.Take());
    }

    // About ten requests a second, with a few milliseconds of work each.
    private static void LightLoad()
    {
        Loops(2, async () =>
        {
            await Task.Delay(100);
            Work(4_000);
            last = new byte[20_000];
        });
    }

    // Large, and stays that large; some old entries are replaced by new ones.
    private static void FullCache()
    {
        for (int i = 0; i < 200_000; i++) cache[$"key {i}"] = new string('x', 300);
        Loops(1, async () =>
        {
            await Task.Delay(20);
            for (int i = 0; i < 50; i++)
            {
                next = (next + 7) % 200_000;
                cache[$"key {next}"] = new string('y', 300);
            }
        });
    }
}
