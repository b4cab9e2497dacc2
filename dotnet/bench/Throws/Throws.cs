using System;
using System.Runtime.CompilerServices;

/// <summary>
/// Only throws and catches: the first argument is how often, the output is how often it was caught.
/// With a second argument it throws nothing: that many rounds of calls that could throw, each under a try and a finally.
/// </summary>
internal static class Throws
{
    private static int caught;
    private static int left;

    private static void Main(string[] arguments)
    {
        int throws = int.Parse(arguments[0]);
        // Warms up, so that every body is optimised before the long part.
        for (int warm = 0; warm < 400; warm++)
            Quiet(1_000);
        if (throws > 0)
            for (int warm = 0; warm < 2_000; warm++)
                Catch(warm);
        for (int round = 0; round < throws; round++)
            Catch(round);
        if (arguments.Length > 1)
            for (int rounds = int.Parse(arguments[1]); rounds > 0; rounds--)
                Quiet(1_000);
        Console.WriteLine($"{caught} {left}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Catch(int round)
    {
        try
        {
            Middle(round);
        }
        catch (InvalidOperationException)
        {
            caught++;
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Middle(int round) => Throw(round) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int Throw(int round) => round >= 0 ? throw new InvalidOperationException("no") : round;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Quiet(int calls)
    {
        for (int call = 0; call < calls; call++)
        {
            try
            {
                if (Middle(-1 - call) > 0)
                    throw new InvalidOperationException("never");
            }
            finally
            {
                left++;
            }
        }
    }
}
