using System;

/// <summary>Results of a group of functions: the calls made in it, and the thread's own CPU time.</summary>
internal static class Group
{
    public static void Print(string group, long calls, long nanoseconds) => Console.WriteLine($"{group} {calls} {nanoseconds}");
}
