using System;
using System.Runtime.CompilerServices;
using static Group;
using static ThreadClock;

/// <summary>
/// Four groups of functions that share the time in known ratios and make calls at very different rates: one every nanosecond
/// or two, every ten, every two hundred, none. The argument is the number of rounds. The output gives, for each group, the calls made and
/// the thread's own CPU time between its entry and exit.
/// </summary>
internal static class Shares
{
    private const MethodImplOptions Whole = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    private static ulong sink = 1;

    private static void Main(string[] arguments)
    {
        int rounds = int.Parse(arguments[0]);
        var times = new long[4];
        for (int round = 0; round < rounds; round++)
        {
            long a = Now();
            Dense(400_000);
            long b = Now();
            Medium(60_000);
            long c = Now();
            Sparse(3_000);
            long d = Now();
            Lone(300_000);
            long e = Now();
            times[0] += b - a;
            times[1] += c - b;
            times[2] += d - c;
            times[3] += e - d;
        }
        Print("Dense", rounds * 400_000L, times[0]);
        Print("Medium", rounds * 60_000L, times[1]);
        Print("Sparse", rounds * 3_000L, times[2]);
        Print("Lone", 0, times[3]);
        Console.WriteLine($"end {sink % 1}");
    }

    [MethodImpl(Whole)]
    private static void Dense(int times)
    {
        ulong sum = sink;
        for (int i = 0; i < times; i++)
            sum = DenseCallee(sum);
        sink = sum;
    }

    [MethodImpl(Whole)]
    private static ulong DenseCallee(ulong value) => value * 6364136223846793005 + 1;

    [MethodImpl(Whole)]
    private static void Medium(int times)
    {
        ulong sum = sink;
        for (int i = 0; i < times; i++)
            sum = MediumCallee(sum);
        sink = sum;
    }

    [MethodImpl(Whole)]
    private static ulong MediumCallee(ulong value) => Steps(value, 0) ^ Mix(value);

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Mix(ulong value)
    {
        for (int i = 0; i < 8; i++)
            value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9;
        return value;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Steps(ulong value, int steps)
    {
        for (int i = 0; i < steps; i++)
            value = (value ^ (value >> 31)) * 0x94D049BB133111EB;
        return value;
    }

    [MethodImpl(Whole)]
    private static void Sparse(int times)
    {
        ulong sum = sink;
        for (int i = 0; i < times; i++)
            sum = SparseCallee(sum);
        sink = sum;
    }

    [MethodImpl(Whole)]
    private static ulong SparseCallee(ulong value) => Steps(value, 150);

    [MethodImpl(Whole)]
    private static void Lone(int steps) => sink = Steps(sink, steps);
}
