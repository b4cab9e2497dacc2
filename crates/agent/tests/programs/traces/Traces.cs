using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.ExceptionServices;
using System.Threading.Tasks;

// Writes stack traces of all kinds, each with the lines and the places in IL that the runtime finds.
static class Traces
{
    const MethodImplOptions Alone = MethodImplOptions.NoInlining;

    [MethodImpl(Alone)]
    static void Fail(string text)
    {
        throw new InvalidOperationException(text); // probed
    }

    [MethodImpl(Alone)]
    static int Number(int number)
    {
        return number + 1; // probed
    }

    [MethodImpl(Alone)]
    static void Say(string text)
    {
        Console.WriteLine("  " + text);
    }

    // The exception stays on the stack of the method while others are called.
    [MethodImpl(Alone)]
    static void ThrowAgain(int depth)
    {
        try
        {
            if (depth == 0) Fail("again"); // probed
            ThrowAgain(depth - 1);
        }
        catch (Exception exception)
        {
            Say(exception.Message);
            throw exception; // probed
        }
    }

    [MethodImpl(Alone)]
    static void Rethrow()
    {
        try
        {
            Fail("rethrown");
        }
        catch (InvalidOperationException)
        {
            Say("in the handler"); // probed
            throw;
        }
    }

    [MethodImpl(Alone)]
    static void Wrap()
    {
        try
        {
            Fail("inner");
        }
        catch (Exception inner)
        {
            Say("wrapping"); // probed
            Say("still");
            throw new ApplicationException("outer", inner); // probed
        }
    }

    [MethodImpl(Alone)]
    static void Captured()
    {
        ExceptionDispatchInfo info = null;
        try
        {
            Fail("captured");
        }
        catch (Exception exception)
        {
            info = ExceptionDispatchInfo.Capture(exception); // probed
        }
        Say("later");
        info.Throw(); // probed
    }

    [MethodImpl(Alone)]
    static void InFinally(int number)
    {
        try
        {
            Say("before");
        }
        finally
        {
            if (number > 0)
                Say("above"); // probed
            Fail("in finally"); // probed
        }
    }

    [MethodImpl(Alone)]
    static bool Filter(Exception exception, int number)
    {
        Say(new StackTrace(true).GetFrame(0).GetFileLineNumber() + " in a filter"); // probed
        return number > 1;
    }

    [MethodImpl(Alone)]
    static void Filtered(int number)
    {
        try
        {
            Fail("filtered");
        }
        catch (Exception exception) when (Filter(exception, number)) // probed
        {
            Say("passed");
            Fail("behind a filter"); // probed
        }
    }

    [MethodImpl(Alone)]
    static int Sum(int number)
    {
        return Number(number)
            + Number(Number(number)) * (number > 3 ? Number(2) : Number(3))
            + (number == 4 ? Thrown(number) : Number(number)) // probed
            + Number(number);
    }

    [MethodImpl(Alone)]
    static int Thrown(int number)
    {
        Say("thrown");
        return number switch // probed
        {
            1 => Number(1),
            2 => Number(2),
            4 => throw new ArgumentException("four"), // probed
            _ => 0,
        };
    }

    [MethodImpl(Alone)]
    static void Loop(int[] numbers)
    {
        for (int at = 0; ; at++) // probed
        {
            if (numbers[at] > 2 && Number(at) > 1)
                Say("large"); // probed
            else
                numbers[at]++;
        }
    }

    [MethodImpl(Alone)]
    static void NoObject(string text, object[] objects)
    {
        Say("none");
        objects[Number(0)] = text.Trim(); // probed
    }

    [MethodImpl(Alone)]
    static void Cast(object value)
    {
        int number = Number(1);
        Say(((string)value).Length > number ? "long" : "short"); // probed
    }

    [MethodImpl(Alone)]
    static int Divide(int by)
    {
        int all = Number(10);
        Say("dividing");
        return all / by; // probed
    }

    [MethodImpl(Alone)]
    static void Switch(string word)
    {
        switch (word)
        {
            case "one":
                Say("1"); // probed
                break;
            case "two":
                Say("2");
                Fail("two"); // probed
                break;
        }
        Fail("behind"); // probed
    }

    sealed class Closed : IDisposable
    {
        [MethodImpl(Alone)]
        public void Dispose()
        {
            Say("closed"); // probed
        }
    }

    [MethodImpl(Alone)]
    static void Using()
    {
        using (var first = new Closed())
        lock (first)
        {
            Say("open");
            Fail("open"); // probed
        }
    }

    [MethodImpl(Alone)]
    static IEnumerable<int> Iterator(int count)
    {
        for (int at = 0; at < count; at++)
        {
            Say("item"); // probed
            yield return at;
        }
        Fail("at the end"); // probed
    }

    [MethodImpl(Alone)]
    static void Iterate()
    {
        foreach (int item in Iterator(2))
            Say("got " + item); // probed
    }

    [MethodImpl(Alone)]
    static async Task Asynchronous(int depth)
    {
        await Task.Yield(); // probed
        if (depth > 0)
        {
            await Asynchronous(depth - 1); // probed
            return;
        }
        Say("deepest");
        Fail("asynchronous"); // probed
    }

    [MethodImpl(Alone)]
    static async Task AsynchronousHandler()
    {
        try
        {
            await Asynchronous(1);
        }
        catch (InvalidOperationException exception)
        {
            await Task.Yield(); // probed
            Say(exception.Message);
            throw new ApplicationException("asynchronous", exception); // probed
        }
        finally
        {
            await Task.Yield();
            Say("finally"); // probed
        }
    }

    [MethodImpl(Alone)]
    static void Lambdas()
    {
        int count = Number(1);
        Action<int> inner = [MethodImpl(Alone)] (number) =>
        {
            Say("in a lambda"); // probed
            if (number > count) Fail("lambda"); // probed
        };
        inner(1);
        inner(5);
    }

    [MethodImpl(Alone)]
    static void Frames(int number)
    {
        Say("frames");
        var trace = new StackTrace(true); // probed
        Say(number > 0 ? Shown(trace) : "none");
        Say(Environment.StackTrace); // probed
    }

    // Lines and places in IL of the program's own frames.
    [MethodImpl(Alone)]
    static string Shown(StackTrace trace)
    {
        string all = "";
        foreach (StackFrame frame in trace.GetFrames())
            all += frame.GetMethod()?.Name + ":" + frame.GetFileLineNumber() + " ";
        return all;
    }

    [MethodImpl(Alone)]
    static void Show(string name, Action act)
    {
        Console.WriteLine(name);
        try
        {
            act();
            Console.WriteLine("  nothing was thrown");
        }
        catch (Exception exception)
        {
            Console.WriteLine(exception.StackTrace);
            Console.WriteLine(exception);
            Console.WriteLine(Shown(new StackTrace(exception, true)));
        }
    }

    static int Main()
    {
        for (int round = 0; round < 2; round++)
        {
            Show("throw again", () => ThrowAgain(2));
            Show("rethrow", Rethrow);
            Show("wrap", Wrap);
            Show("captured", Captured);
            Show("finally", () => InFinally(1));
            Show("filter that passes", () => Filtered(2));
            Show("filter that does not", () => Filtered(1));
            Show("sum", () => Sum(4));
            Show("loop", () => Loop(new[] { 1, 4, 2 }));
            Show("no object", () => NoObject(null, new object[2]));
            Show("no room", () => NoObject("a", new object[1]));
            Show("cast", () => Cast(new object()));
            Show("divide", () => Divide(0));
            Show("switch one", () => Switch("one"));
            Show("switch two", () => Switch("two"));
            Show("using", Using);
            Show("iterator", Iterate);
            Show("async", () => Asynchronous(2).GetAwaiter().GetResult());
            Show("async handler", () => AsynchronousHandler().GetAwaiter().GetResult());
            Show("lambda", Lambdas);
            Show("frames", () => Frames(1));
        }
        return 0;
    }
}
