using System;
using System.Collections.Generic;

class Basket
{
    readonly int started = 1; // 3 hits

    public Basket() // 1 hits
    {
        Named = "x"; // 1 hits
    }

    public Basket(string name) => Named = name; // 4 hits

    public int Plain { get; set; } // none
    public int Initial { get; set; } = 10; // none
    public string Named { get; } // none
    public List<string> Texts { get; init; } = new List<string> { // none
        "a" + typeof(Basket).Name }; // none
    public int Half { get; private set; } = Math.Max(1, 2); // none
    public static int Shared { get; set; } = 5; // 1 hits
    public int Computed => started + 1; // 2 hits
    public int Written
    {
        get { return Plain; } // 3 hits
        set { Plain = value; } // 0 hits
    }
    public event Action Done;
    public void Raise() => Done?.Invoke(); // 1 hits, 2 branches
}

struct Point
{
    public Point(int x)
    {
        X = x; // 1 hits
    }
    public int X { get; } // none
}

class Box<T> : List<T>
{
    public T Value { get; set; } = default(T); // none
    public int Number { get; } = 4; // none
    public int Twice() => Number * 2; // 1 hits
}

record Person(string Name, int Age) // 1 hits
{
    public string Title { get; set; } = "none"; // none
    public string Full() => Name + Title; // 1 hits
}

static class Props
{
    static void Main()
    {
        var basket = new Basket(); // 1 hits
        basket.Plain = 3; // 1 hits
        var named = new Basket("a") { Texts = null }; // 1 hits
        new Basket("b").Initial = 3; // 1 hits
        int sum = basket.Plain + basket.Initial + basket.Half + Basket.Shared + basket.Computed + named.Computed; // 1 hits
        sum += basket.Written + new Point(3).X + new Box<string>().Twice(); // 1 hits
        basket.Raise(); // 1 hits
        Console.WriteLine(sum + new Person("n", 3).Full()); // 1 hits
    }
}
