using System;
using System.Runtime.CompilerServices;
using static Group;
using static ThreadClock;

/// <summary>
/// Five groups of functions that wait for different things: memory, each other, the arithmetic units, branch prediction, nothing.
/// The argument is the number of rounds. The output gives, for each group, the calls made below it and the thread's own CPU time between
/// its entry and exit.
/// </summary>
internal static unsafe class Mixed
{
    private const MethodImplOptions Whole = MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization;

    private static readonly int[] Next = Cycle(1 << 17);
    private static readonly double[] Numbers = new double[4096];
    private static readonly byte[] Kinds = RandomKinds(4096);
    private static int place;
    private static ulong sink = 1;
    private static double total;

    private static void Main(string[] arguments)
    {
        int rounds = int.Parse(arguments[0]);
        var times = new long[5];
        for (int round = 0; round < rounds; round++)
        {
            long a = Now();
            Chase(80_000);
            long b = Now();
            Fib(26);
            long c = Now();
            Sum(24_000);
            long d = Now();
            Turns(60_000);
            long e = Now();
            Lone(380_000);
            long f = Now();
            times[0] += b - a;
            times[1] += c - b;
            times[2] += d - c;
            times[3] += e - d;
            times[4] += f - e;
        }
        Print("Chase", rounds * 80_000L, times[0]);
        // Calls of the recursion for 26: twice the 27th Fibonacci number minus one.
        Print("Fib", rounds * 392_835L, times[1]);
        Print("Sum", rounds * 24_000L, times[2]);
        Print("Turns", rounds * 60_000L, times[3]);
        Print("Lone", 0, times[4]);
        Console.WriteLine($"end {(sink + (ulong)place + (ulong)total) % 1}");
    }

    /// <summary>Each step waits for the memory that holds the next address.</summary>
    [MethodImpl(Whole)]
    private static void Chase(int steps)
    {
        int at = place;
        for (int i = 0; i < steps; i++)
            at = ChaseStep(at);
        place = at;
    }

    [MethodImpl(Whole)]
    private static int ChaseStep(int at) => Next[at];

    /// <summary>Little but calls, on always changing paths.</summary>
    [MethodImpl(Whole)]
    private static void Fib(int n) => sink += FibOf(n);

    [MethodImpl(Whole)]
    private static ulong FibOf(int n) => n < 2 ? (ulong)n : FibOf(n - 1) + FibOf(n - 2);

    /// <summary>Keeps the arithmetic units busy, with no other stalls.</summary>
    [MethodImpl(Whole)]
    private static void Sum(int blocks)
    {
        double sum = total;
        for (int i = 0; i < blocks; i++)
            sum += SumBlock((i & 63) * 64);
        total = sum;
    }

    [MethodImpl(Whole)]
    private static double SumBlock(int start)
    {
        double a = 0, b = 0, c = 0, d = 0;
        double[] numbers = Numbers;
        for (int i = start; i < start + 64 && i + 3 < numbers.Length; i += 4)
        {
            a += numbers[i] + i;
            b += numbers[i + 1] + i;
            c += numbers[i + 2] + i;
            d += numbers[i + 3] + i;
        }
        return a + b + c + d;
    }

    /// <summary>The processor mispredicts the target of each call.</summary>
    [MethodImpl(Whole)]
    private static void Turns(int times)
    {
        delegate*<ulong, ulong>* ways = stackalloc delegate*<ulong, ulong>[] { &TurnsA, &TurnsB, &TurnsC, &TurnsD };
        ulong sum = sink;
        for (int i = 0; i < times; i++)
            sum = ways[Kinds[(i + (int)sum) & 4095]](sum);
        sink = sum;
    }

    [MethodImpl(Whole)]
    private static ulong TurnsA(ulong value) => value * 3 + 1;

    [MethodImpl(Whole)]
    private static ulong TurnsB(ulong value) => value * 5 + 7;

    [MethodImpl(Whole)]
    private static ulong TurnsC(ulong value) => value * 9 + 5;

    [MethodImpl(Whole)]
    private static ulong TurnsD(ulong value) => value * 17 + 3;

    [MethodImpl(Whole)]
    private static void Lone(int steps)
    {
        ulong value = sink;
        for (int i = 0; i < steps; i++)
            value = (value ^ (value >> 31)) * 0x94D049BB133111EB;
        sink = value;
    }

    /// <summary>One cycle through all places, in random order (Sattolo's shuffle).</summary>
    private static int[] Cycle(int length)
    {
        var next = new int[length];
        for (int i = 0; i < length; i++)
            next[i] = i;
        ulong random = 88172645463325252;
        for (int i = length - 1; i > 0; i--)
        {
            int other = (int)(Random(ref random) % (ulong)i);
            (next[i], next[other]) = (next[other], next[i]);
        }
        return next;
    }

    private static byte[] RandomKinds(int length)
    {
        var kinds = new byte[length];
        ulong random = 88172645463325252;
        for (int i = 0; i < length; i++)
            kinds[i] = (byte)(Random(ref random) >> 20 & 3);
        return kinds;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    private static ulong Random(ref ulong state)
    {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
}
