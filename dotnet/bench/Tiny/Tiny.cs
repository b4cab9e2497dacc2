using System;
using System.Runtime.CompilerServices;

/// <summary>A recursion of tiny functions: nothing but calls. The argument is the number of rounds; the output is the number of calls made. With 0 it only says hello.</summary>
internal static class Tiny
{
    private static void Main(string[] arguments)
    {
        int rounds = int.Parse(arguments[0]);
        if (rounds == 0)
        {
            Console.WriteLine("hello, world");
            return;
        }
        // Warm, so that every body is optimised before the long part.
        long calls = 0;
        for (int warm = 0; warm < 200; warm++)
            calls += Even(14);
        for (int round = 0; round < rounds; round++)
            calls += Even(18);
        Console.WriteLine(calls);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Even(int depth) => depth == 0 ? 1 : 1 + Odd(depth - 1) + Odd(depth - 1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Odd(int depth) => depth == 0 ? 1 : 1 + Even(depth - 1) + Even(depth - 1);
}
