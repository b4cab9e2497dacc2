using System;
using System.Runtime.CompilerServices;
using System.Threading;

/// <summary>A recursion of tiny functions: nothing but calls. The argument is the number of rounds; the output the number of calls. With 0
/// it prints only a greeting; with 0 and a number, that many threads make a few calls and wait, and it prints its memory use.</summary>
internal static class Tiny
{
    private static void Main(string[] arguments)
    {
        int rounds = int.Parse(arguments[0]);
        if (arguments.Length > 1)
        {
            Console.WriteLine(MemoryWithThreads(int.Parse(arguments[1])));
            return;
        }
        if (rounds == 0)
        {
            Console.WriteLine("hello, world");
            return;
        }
        // Warms up, so that every body is optimised before the long part.
        long calls = 0;
        for (int warm = 0; warm < 200; warm++)
            calls += Even(14);
        for (int round = 0; round < rounds; round++)
            calls += Even(18);
        Console.WriteLine(calls);
    }

    private static long MemoryWithThreads(int threads)
    {
        using var ready = new CountdownEvent(threads + 1);
        using var over = new ManualResetEventSlim();
        for (int thread = 0; thread < threads; thread++)
        {
            new Thread(() =>
            {
                Even(3);
                ready.Signal();
                over.Wait();
            }) { IsBackground = true }.Start();
        }
        ready.Signal();
        ready.Wait();
        long bytes = Environment.WorkingSet;
        over.Set();
        return bytes;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Even(int depth) => depth == 0 ? 1 : 1 + Odd(depth - 1) + Odd(depth - 1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Odd(int depth) => depth == 0 ? 1 : 1 + Even(depth - 1) + Even(depth - 1);
}
