using System;
using System.Runtime.CompilerServices;

/// <summary>
/// Recursions of functions with 1, 3 or 6 primitive arguments, some of them doubles: `Numbers COUNT ROUNDS`; 0 is the recursion of 1, by
/// functions whose names do not contain Traced. The output is the number of calls made.
/// </summary>
internal static class Numbers
{
    private const MethodImplOptions Keep = MethodImplOptions.NoInlining;

    private static void Main(string[] arguments)
    {
        int count = int.Parse(arguments[0]), rounds = int.Parse(arguments[1]);
        long calls = 0;
        for (int i = 0; i < 1000; i++) calls += Traced1(0);
        // Warms up, so that every body is optimised before the long part.
        for (int warm = 0; warm < 200; warm++) calls += Round(count, 10);
        for (int round = 0; round < rounds; round++) calls += Round(count, 16);
        Console.WriteLine(calls);
    }

    private static long Round(int count, int depth) => count switch
    {
        0 => Plain(depth),
        1 => Traced1(depth),
        3 => Traced3(depth, depth * 2L, 0.5),
        _ => Traced6(depth, 7L, 0.25, -depth, 1.5, 2.5),
    };

    [MethodImpl(Keep)]
    private static long Plain(int depth) => depth == 0 ? 1 : 1 + Plain(depth - 1) + Plain(depth - 1);

    [MethodImpl(Keep)]
    private static long Traced1(int depth) => depth == 0 ? 1 : 1 + Traced1(depth - 1) + Traced1(depth - 1);

    [MethodImpl(Keep)]
    private static long Traced3(int depth, long a, double b) =>
        depth == 0 ? 1 : 1 + Traced3(depth - 1, a + 1, b) + Traced3(depth - 1, a, b);

    [MethodImpl(Keep)]
    private static long Traced6(int depth, long a, double b, int c, double d, double e) =>
        depth == 0 ? 1 : 1 + Traced6(depth - 1, a + 1, b, c, d, e) + Traced6(depth - 1, a, b, c, d, e);
}
