using System;
using System.Collections.Generic;
using System.Diagnostics.CodeAnalysis;
using System.Runtime.ExceptionServices;
using System.Threading.Tasks;
using Exits;

static class Ends
{
    [DoesNotReturn]
    static void Throw() => throw new InvalidOperationException(); // 12 hits

    static void Plain()
    {
        Console.Write(""); // 1 hits
        Throw(); // 1 hits
        Console.Write(""); // none
    }

    static void Branch(bool ends)
    {
        if (ends) // 2 hits, 2 branches
        {
            Throw(); // 1 hits
            Console.Write(""); // none
        }
        Console.Write(""); // 1 hits
    }

    static void Choose(int number)
    {
        switch (number) // 3 hits, 4 branches
        {
            case 0:
                Throw(); // 1 hits
                goto case 1; // none
            case 1:
                Console.Write(""); // 1 hits
                break; // 1 hits
            default:
                Throw(); // 1 hits
                break; // none
        }
        Console.Write(""); // 1 hits
    }

    static int Condition(int number)
    {
        Throw(); // 1 hits
        if (number == 1) // none
        {
            return 2; // none
        }
        return 3; // none
    }

    static void Blocks()
    {
        try
        {
            Throw(); // 1 hits
            Console.Write(""); // none
        }
        catch (InvalidOperationException error) when (error.Message != null)
        {
            Console.Write(""); // 1 hits
            Throw(); // 1 hits
            Console.Write(""); // none
        }
        finally
        {
            Console.Write(""); // 1 hits
        }
        Console.Write(""); // none
    }

    // Nothing goes through the block that ends with a call.
    static void Leaving()
    {
        try
        {
            Console.Write(""); // 1 hits
        }
        finally
        {
            Throw(); // 1 hits
            Console.Write(""); // none
        }
        Console.Write(""); // none
    }

    static void Caught()
    {
        try
        {
            Throw(); // 1 hits
        }
        catch (InvalidOperationException)
        {
            Console.Write(""); // 1 hits
        }
        Console.Write(""); // 1 hits
    }

    static void Others()
    {
        int number = Fail.Always(3); // 1 hits
        Fail.Always("text"); // 1 hits
        Console.Write(number); // none
    }

    static void Generic(List<string> texts)
    {
        Of<string>.Value("text", texts.ToArray()); // 1 hits
        Console.Write(""); // none
    }

    static void Framework(Exception error)
    {
        ExceptionDispatchInfo.Throw(error); // 1 hits
        Console.Write(""); // none
    }

    static async Task Later()
    {
        await Task.CompletedTask; // 1 hits
        Throw(); // 1 hits
        Console.Write(""); // none
    }

    static IEnumerable<int> Each()
    {
        yield return 1; // 1 hits
        Throw(); // 1 hits
        Console.Write(""); // none
    }

    static void Local()
    {
        Within(); // 1 hits
        Console.Write(""); // 0 hits
        void Within()
        {
            Throw(); // 1 hits
            Console.Write(""); // none
        }
    }

    // Code that nothing reaches anyhow, and that no such call is in front of, stays.
    static int Dead(bool ends)
    {
        while (true)
        {
            if (ends) throw new InvalidOperationException(); // 2 hits, 2 branches
            Fail.Always(1); // 0 hits
        }
    }

    static void Named()
    {
        int number = 1; // 1 hits
        Fail.Typed("x", ref number); // 1 hits
        Console.Write(number); // 0 hits unless named
    }

    static void Try(Action action)
    {
        try
        {
            action();
        }
        catch (Exception)
        {
        }
    }

    static void Main()
    {
        Try(Plain);
        Try(() => Branch(true));
        Try(() => Branch(false));
        for (int number = 0; number < 3; number++)
        {
            int one = number;
            Try(() => Choose(one));
        }
        Try(() => Condition(1));
        Try(Blocks);
        Try(Leaving);
        Try(Caught);
        Try(Others);
        Try(() => Generic(new List<string>()));
        Try(() => Framework(new InvalidOperationException()));
        Try(() => Later().GetAwaiter().GetResult());
        Try(() =>
        {
            foreach (int _ in Each())
            {
            }
        });
        Try(Local);
        Try(() => Dead(true));
        Try(Named);
        Console.WriteLine("done");
    }
}
