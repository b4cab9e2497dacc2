using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Text;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.RegularExpressions;
using System.Threading;
using System.Xml.Linq;

/// <summary>
/// Ordinary work for the framework's libraries: makes orders, writes and reads them as JSON and XML, searches, groups, sorts, prints them.
/// The argument is the number of rounds; the output is a checksum. A second argument is a number of threads that wait meanwhile; then the
/// output also has the time of the rounds. With `pace` instead of a number the rounds never end, and the output is the nanoseconds of each
/// ten of them.
/// </summary>
internal static class Library
{
    private static readonly string[] Words =
        "amber basil cedar delta ember fjord grove haven inlet jetty knoll larch maple north ocean poppy quill ridge stone thorn umber vista willow yarrow"
            .Split(' ');

    private static void Main(string[] arguments)
    {
        if (arguments.Length > 1)
            Wait(int.Parse(arguments[1], CultureInfo.InvariantCulture));
        if (arguments[0] == "pace")
            Pace();
        int rounds = int.Parse(arguments[0], CultureInfo.InvariantCulture);
        var watch = Stopwatch.StartNew();
        ulong sum = Work(rounds);
        watch.Stop();
        Console.WriteLine(sum.ToString("x16", CultureInfo.InvariantCulture));
        if (arguments.Length > 1)
            Console.WriteLine($"work {watch.ElapsedTicks * (1_000_000_000 / Stopwatch.Frequency)} ns");
    }

    /// <summary>Starts idle threads.</summary>
    private static void Wait(int threads)
    {
        using var started = new CountdownEvent(threads + 1);
        for (int i = 0; i < threads; i++)
        {
            var idle = new Thread(() => { started.Signal(); Thread.Sleep(Timeout.Infinite); }, 128 * 1024) { IsBackground = true };
            idle.Start();
        }
        started.Signal();
        started.Wait();
    }

    private static void Pace()
    {
        for (;;)
        {
            var watch = Stopwatch.StartNew();
            Work(10);
            Console.WriteLine(watch.ElapsedTicks * (1_000_000_000 / Stopwatch.Frequency));
        }
    }

    private static ulong Work(int rounds)
    {
        ulong sum = 0;
        for (int round = 0; round < rounds; round++)
        {
            List<Order> orders = Orders.Make(new Random(1000 + round % 7), 120);
            string json = Json.Write(orders);
            sum = Mix(sum, Json.Read(json));
            sum = Mix(sum, Json.Document(json));
            sum = Mix(sum, Xml.RoundTrip(orders));
            sum = Mix(sum, Search.Patterns(json));
            sum = Mix(sum, Queries.Run(orders));
            sum = Mix(sum, Texts.Print(orders));
            sum = Mix(sum, Tables.Count(orders));
        }
        return sum;
    }

    internal static ulong Mix(ulong sum, ulong value) => (sum ^ value) * 0x9E3779B97F4A7C15UL;

    internal static ulong Hash(string text)
    {
        ulong sum = 14695981039346656037UL;
        foreach (char c in text)
            sum = (sum ^ c) * 1099511628211UL;
        return sum;
    }

    internal static string Word(Random random) => Words[random.Next(Words.Length)];
}

internal sealed class Line
{
    public string Article { get; set; } = "";
    public int Quantity { get; set; }
    public decimal Price { get; set; }
}

internal sealed class Order
{
    public int Number { get; set; }
    public string Customer { get; set; } = "";
    public DateTime Placed { get; set; }
    public Dictionary<string, string> Notes { get; set; } = new();
    public List<Line> Lines { get; set; } = new();

    public decimal Total() => Lines.Sum(line => line.Quantity * line.Price);
}

internal static class Orders
{
    internal static List<Order> Make(Random random, int count) => Enumerable.Range(1, count).Select(number => One(random, number)).ToList();

    private static Order One(Random random, int number)
    {
        var order = new Order
        {
            Number = number,
            Customer = Library.Word(random) + " " + Library.Word(random),
            Placed = new DateTime(2024, 1, 1, 0, 0, 0, DateTimeKind.Utc).AddMinutes(random.Next(500000)),
        };
        for (int note = random.Next(3); note >= 0; note--)
            order.Notes[Library.Word(random)] = $"{Library.Word(random)}-{random.Next(100):000}@{Library.Word(random)}.example";
        for (int line = random.Next(1, 6); line > 0; line--)
            order.Lines.Add(new Line { Article = Library.Word(random), Quantity = random.Next(1, 20), Price = random.Next(100, 9999) / 100m });
        return order;
    }
}

internal static class Json
{
    private static readonly JsonSerializerOptions Options = new() { PropertyNamingPolicy = JsonNamingPolicy.CamelCase, WriteIndented = true };

    internal static string Write(List<Order> orders) => JsonSerializer.Serialize(orders, Options);

    internal static ulong Read(string json)
    {
        List<Order> orders = JsonSerializer.Deserialize<List<Order>>(json, Options)!;
        return (ulong)(orders.Sum(order => order.Total()) * 100m);
    }

    /// <summary>Parses the same text into a tree of nodes, and changes it in place.</summary>
    internal static ulong Document(string json)
    {
        JsonArray orders = JsonNode.Parse(json)!.AsArray();
        foreach (JsonNode? order in orders)
        {
            JsonArray lines = order!["lines"]!.AsArray();
            order["count"] = lines.Count;
            if (lines.Count > 3)
                lines.RemoveAt(0);
        }
        return Library.Hash(orders.ToJsonString());
    }
}

internal static class Xml
{
    internal static ulong RoundTrip(List<Order> orders)
    {
        var document = new XDocument(new XElement("orders", orders.Select(Element)));
        var writer = new StringWriter(CultureInfo.InvariantCulture);
        document.Save(writer);
        XDocument again = XDocument.Parse(writer.ToString());
        return (ulong)again.Descendants("line").Where(line => (int)line.Attribute("quantity")! > 5).Sum(line => line.Value.Length);
    }

    private static XElement Element(Order order) =>
        new("order", new XAttribute("number", order.Number), new XElement("customer", order.Customer),
            order.Lines.Select(line => new XElement("line", new XAttribute("quantity", line.Quantity), line.Article)));
}

internal static class Search
{
    private static readonly Regex Address = new(@"(?<user>[a-z]+)-(?<number>\d{3})@(?<host>[a-z]+)\.example");
    private static readonly Regex Date = new(@"\b(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})");
    private static readonly Regex Price = new(@"""price"":\s*(\d+(?:\.\d+)?)", RegexOptions.CultureInvariant);

    internal static ulong Patterns(string text)
    {
        ulong sum = 0;
        foreach (Match match in Address.Matches(text))
            sum += (ulong)(match.Groups["user"].Length * int.Parse(match.Groups["number"].ValueSpan, CultureInfo.InvariantCulture));
        foreach (Match match in Date.Matches(text))
            sum += ulong.Parse(match.Groups[2].ValueSpan, CultureInfo.InvariantCulture);
        string dearer = Price.Replace(text, match => match.Value + "0");
        return Library.Mix(sum, (ulong)dearer.Length);
    }
}

internal static class Queries
{
    internal static ulong Run(List<Order> orders)
    {
        var best = orders
            .SelectMany(order => order.Lines, (order, line) => (order.Customer, line.Article, Value: line.Price * line.Quantity))
            .GroupBy(sale => sale.Article)
            .Select(group => (Article: group.Key, Sum: group.Sum(sale => sale.Value), Buyers: group.Select(sale => sale.Customer).Distinct().Count()))
            .OrderByDescending(row => row.Sum).ThenBy(row => row.Article, StringComparer.Ordinal)
            .Take(8).ToList();
        var months = from order in orders
                     group order by order.Placed.Month into month
                     orderby month.Key
                     select month.Key * month.Max(order => order.Lines.Count);
        return (ulong)best.Sum(row => row.Sum * row.Buyers) + (ulong)months.Sum();
    }
}

internal static class Texts
{
    internal static ulong Print(List<Order> orders)
    {
        var text = new StringBuilder();
        foreach (Order order in orders)
        {
            text.Append(CultureInfo.InvariantCulture, $"{order.Number,6} {order.Customer,-16} {order.Placed:yyyy-MM-dd HH:mm} {order.Total(),10:F2}").AppendLine();
            text.AppendJoin(", ", order.Lines.Select(line => line.Article.ToUpperInvariant())).AppendLine();
        }
        string[] rows = text.ToString().Split('\n', StringSplitOptions.RemoveEmptyEntries | StringSplitOptions.TrimEntries);
        Array.Sort(rows, StringComparer.Ordinal);
        return Library.Hash(string.Join('\n', rows).Replace("AMBER", "amber", StringComparison.Ordinal));
    }
}

internal static class Tables
{
    internal static ulong Count(List<Order> orders)
    {
        var stock = new SortedDictionary<string, int>(StringComparer.Ordinal);
        var pairs = new Dictionary<(string, string), int>();
        var queue = new PriorityQueue<Order, decimal>();
        foreach (Order order in orders)
        {
            foreach (Line line in order.Lines)
            {
                stock[line.Article] = stock.GetValueOrDefault(line.Article) + line.Quantity;
                var key = (order.Customer, line.Article);
                pairs[key] = pairs.TryGetValue(key, out int known) ? known + 1 : 1;
            }
            queue.Enqueue(order, order.Total());
        }
        ulong sum = (ulong)pairs.Count;
        while (queue.TryDequeue(out Order? order, out _))
            sum = Library.Mix(sum, (ulong)order.Number);
        return stock.Aggregate(sum, (all, row) => Library.Mix(all, (ulong)row.Value));
    }
}
