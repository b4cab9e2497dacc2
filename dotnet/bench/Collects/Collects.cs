// Allocates as many megabytes of garbage as the argument says, on two threads; one object in twenty survives some collections.
using System;
using System.Threading;

namespace Collects;

internal sealed class Link
{
    public Link? Next;
    public long Value;
}

internal static class Program
{
    private const int KeptAtOnce = 200_000;

    private static int Main(string[] arguments)
    {
        int megabytes = int.Parse(arguments[0]);
        long sum = 0;
        Thread[] all = new Thread[2];
        for (int i = 0; i < all.Length; i++) (all[i] = new Thread(() => Interlocked.Add(ref sum, Run(megabytes / 2)))).Start();
        foreach (Thread thread in all) thread.Join();
        Console.WriteLine($"result {sum}");
        return 0;
    }

    private static long Run(int megabytes)
    {
        Link? kept = null;
        int length = 0;
        long sum = 0;
        for (long i = 0; i < megabytes * 1_000_000L / 32; i++)
        {
            Link link = new() { Value = i };
            sum += link.Value & 1;
            if (i % 20 != 0) continue;
            link.Next = kept;
            kept = link;
            if (++length < KeptAtOnce) continue;
            kept = null;
            length = 0;
        }
        GC.KeepAlive(kept);
        return sum;
    }
}
