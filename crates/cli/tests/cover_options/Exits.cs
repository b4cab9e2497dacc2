using System;
using System.Diagnostics.CodeAnalysis;

namespace Exits;

public sealed class EndsAttribute : Attribute { }

public static class Fail
{
    [DoesNotReturn]
    public static int Always(string text) => throw new InvalidOperationException(text);

    // The other one of this name returns.
    public static int Always(int number) => number;

    [Ends]
    public static T Typed<T>(T value, ref int number) => throw new ArgumentException(value.ToString() + number);
}

public static class Of<T>
{
    [DoesNotReturn]
    public static void Value(T value, T[] values) => throw new ArgumentException(value.ToString() + values.Length);
}
