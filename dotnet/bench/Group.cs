using System;
using System.Runtime.InteropServices;

/// <summary>What a group of functions did: the calls that were made in it, and the thread's own CPU time.</summary>
internal static class Group
{
    private struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int ReadClock(int clock, out Timespec time);

    /// <summary>CPU time of this thread so far, in nanoseconds.</summary>
    public static long Now()
    {
        const int ThreadCpuTime = 3;
        ReadClock(ThreadCpuTime, out Timespec time);
        return time.Seconds * 1_000_000_000 + time.Nanoseconds;
    }

    public static void Print(string group, long calls, long nanoseconds) => Console.WriteLine($"{group} {calls} {nanoseconds}");
}
