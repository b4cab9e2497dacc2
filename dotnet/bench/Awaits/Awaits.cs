// Awaits that always wait, and go on at once on the same thread: next to nothing but what an await costs. The argument is
// how many thousands; prints the number of awaits.
using System;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Threading.Tasks;

namespace Awaits;

internal sealed class Pump : ICriticalNotifyCompletion
{
    private Action? next;

    public bool IsCompleted => false;

    public Pump GetAwaiter() => this;

    public void GetResult() { }

    public void OnCompleted(Action continuation) => next = continuation;

    public void UnsafeOnCompleted(Action continuation) => next = continuation;

    // Goes on with what waits, if something does.
    public void Turn()
    {
        Action? waiting = next;
        next = null;
        waiting?.Invoke();
    }
}

internal static class Program
{
    private static readonly Pump Pump = new();

    private static void Main(string[] args)
    {
        int count = 1000 * int.Parse(args[0], CultureInfo.InvariantCulture);
        Task<int> all = Wait(count);
        while (!all.IsCompleted) Pump.Turn();
        Console.WriteLine(all.Result);
    }

    private static async Task<int> Wait(int count)
    {
        int done = 0;
        for (; done < count; done++) await Pump;
        return done;
    }
}
