using System;

/// <summary>What a group of functions did: the calls that were made in it, and the thread's own CPU time.</summary>
internal static class Group
{
    public static void Print(string group, long calls, long nanoseconds) => Console.WriteLine($"{group} {calls} {nanoseconds}");
}
