// Awaits that always suspend, and resume at once on the same thread: almost no cost but that of an await. The argument is
// the number of awaits in thousands; prints the number of awaits.
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

    // Resumes the waiting code, if there is any.
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
