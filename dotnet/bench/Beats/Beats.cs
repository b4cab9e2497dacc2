using System;
using System.Runtime.CompilerServices;
using static Group;
using static ThreadClock;

/// <summary>
/// Two functions that take turns of equal length by the thread's CPU clock: a sampler in step with them sees only one. The
/// arguments are the microseconds of a turn and the number of pairs of turns. The output gives, for each function, its thread's CPU time
/// between its entry and exit.
/// </summary>
internal static class Beats
{
    private const MethodImplOptions Whole = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    private static ulong sink = 1;

    private static void Main(string[] arguments)
    {
        long turn = long.Parse(arguments[0]) * 1000;
        int pairs = int.Parse(arguments[1]);
        long even = 0, odd = 0, at = Now();
        // Turns end on a fixed grid: a late turn does not delay the next one.
        long end = at;
        for (int pair = 0; pair < pairs; pair++)
        {
            Even(end += turn);
            long between = Now();
            Odd(end += turn);
            long now = Now();
            even += between - at;
            odd += now - between;
            at = now;
        }
        Print("Even", 0, even);
        Print("Odd", 0, odd);
        Console.WriteLine($"end {sink % 1}");
    }

    [MethodImpl(Whole)]
    private static void Even(long end)
    {
        while (Now() < end) sink = Steps(sink);
    }

    [MethodImpl(Whole)]
    private static void Odd(long end)
    {
        while (Now() < end) sink = Steps(sink);
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Steps(ulong value)
    {
        for (int i = 0; i < 2_000; i++)
            value = (value ^ (value >> 31)) * 0x94D049BB133111EB;
        return value;
    }
}
