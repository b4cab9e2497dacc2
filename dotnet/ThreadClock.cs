using System.Runtime.InteropServices;

/// <summary>The CPU time of the calling thread.</summary>
internal static class ThreadClock
{
    private struct Timespec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int ReadClock(int clock, out Timespec time);

    /// <summary>So far, in nanoseconds.</summary>
    public static long Now()
    {
        const int ThreadCpuTime = 3;
        ReadClock(ThreadCpuTime, out Timespec time);
        return time.Seconds * 1_000_000_000 + time.Nanoseconds;
    }
}
