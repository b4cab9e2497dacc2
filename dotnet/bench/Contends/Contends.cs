// A lock that is always contended: one thread holds it until another waits for it, again and again. To be run on one
// processor, where no thread spins for a lock. The argument is the number of waits in thousands; prints the number of waits, and the
// runtime must have counted each.
using System;
using System.Globalization;
using System.Threading;

namespace Contends;

internal static class Program
{
    private static readonly object Gate = new();
    private static volatile int round, done;

    private static void Main(string[] args)
    {
        int count = 1000 * int.Parse(args[0], CultureInfo.InvariantCulture);
        var asks = new Thread(() =>
        {
            while (done < count)
            {
                while (round == done) Thread.Yield();
                lock (Gate) done = round;
            }
        });
        asks.Start();
        long before = Monitor.LockContentionCount;
        for (int next = 1; next <= count; next++)
        {
            lock (Gate)
            {
                round = next;
                while ((asks.ThreadState & ThreadState.WaitSleepJoin) == 0) Thread.Yield();
            }
            while (done < next) Thread.Yield();
        }
        asks.Join();
        // The count may include the framework's own locks.
        if (Monitor.LockContentionCount - before < count) throw new InvalidOperationException("a lock was free");
        Console.WriteLine(count);
    }
}
