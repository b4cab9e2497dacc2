using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text.RegularExpressions;

namespace Shop;

/// <summary>The day's orders as they come in: lines of text, some malformed, some duplicated.</summary>
internal static class OrderFeed
{
    private static readonly string[] Countries = { "AT", "BR", "CA", "DE", "FR", "IN", "JP", "NL", "SE", "US" };
    private static readonly string[] Coupons = { "", "", "", "", "SPRING10", "WELCOME5", "BULK", "EXPIRED" };

    public static IReadOnlyList<string> Lines(int count, Catalog catalog)
    {
        Product[] products = catalog.Products.ToArray();
        var random = new Lcg(42);
        var lines = new List<string>(count);
        for (int id = 1; id <= count; id++)
        {
            lines.Add(lines.Count > 20 && random.Next(25) == 0 ? lines[^(1 + random.Next(20))] : Line(id, random, products));
        }
        return lines;
    }

    private static string Line(int id, Lcg random, Product[] products)
    {
        string customer = $"customer{random.Next(600):D4}@example.{(random.Next(2) == 0 ? "com" : "org")}";
        string sku = random.Next(60) == 0 ? "XX-0000" : products[random.Next(products.Length)].Sku;
        string quantity = random.Next(50) == 0 ? "many" : (1 + random.Next(random.Next(10) == 0 ? 40 : 4)).ToString(CultureInfo.InvariantCulture);
        string day = $"2025-{1 + random.Next(12):D2}-{1 + random.Next(random.Next(200) == 0 ? 31 : 28):D2}";
        string line = $"{id};{customer};{Countries[random.Next(Countries.Length)]};{day};{sku};{quantity};{Coupons[random.Next(Coupons.Length)]}";
        return random.Next(80) == 0 ? line.Replace(';', ',') : line;
    }
}

/// <summary>Turns lines into orders and keeps count of those that are malformed.</summary>
internal sealed class Inbox
{
    private readonly Catalog catalog;
    private readonly SortedDictionary<string, int> rejected = new(StringComparer.Ordinal);

    public Inbox(Catalog catalog) => this.catalog = catalog;

    public IReadOnlyDictionary<string, int> Rejected => rejected;

    public List<Order> Read(IEnumerable<string> lines)
    {
        var orders = new List<Order>();
        foreach (string line in lines)
        {
            try
            {
                orders.Add(Parse(line));
            }
            catch (InvalidOrderException e)
            {
                rejected[e.Message] = rejected.GetValueOrDefault(e.Message) + 1;
            }
        }
        return orders;
    }

    private Order Parse(string line)
    {
        // Slow on purpose: the regex is compiled for each line.
        var pattern = new Regex(@"^(?<id>\d+);(?<customer>[^;@]+@[^;]+);(?<country>[A-Z]{2});(?<day>[\d-]{10});(?<sku>[^;]+);(?<quantity>[^;]*);(?<coupon>\w*)$");
        Match match = pattern.Match(line);
        if (!match.Success) throw new InvalidOrderException("malformed line");
        Product product = catalog.Find(match.Groups["sku"].Value);
        return new Order(
            int.Parse(match.Groups["id"].Value, CultureInfo.InvariantCulture),
            match.Groups["customer"].Value,
            match.Groups["country"].Value,
            Day(match.Groups["day"].Value),
            product.Sku,
            Quantity(match.Groups["quantity"].Value),
            match.Groups["coupon"].Value);
    }

    // Exceptions as control flow: TryParse would do.
    private static int Quantity(string text)
    {
        try
        {
            return int.Parse(text, CultureInfo.InvariantCulture);
        }
        catch (FormatException e)
        {
            throw new InvalidOrderException("quantity is no number", e);
        }
    }

    private static DateOnly Day(string text)
    {
        try
        {
            return DateOnly.ParseExact(text, "yyyy-MM-dd", CultureInfo.InvariantCulture);
        }
        catch (FormatException e) when (text.Length == 10)
        {
            throw new InvalidOrderException("no such day", e);
        }
    }
}

internal static class Deduplicator
{
    /// <summary>Slow on purpose: compares each order with all those kept so far.</summary>
    public static List<Order> Remove(List<Order> orders, out int duplicates)
    {
        var kept = new List<Order>();
        duplicates = 0;
        foreach (Order order in orders)
        {
            if (IsKnown(kept, order)) duplicates++;
            else kept.Add(order);
        }
        return kept;
    }

    private static bool IsKnown(List<Order> kept, Order order)
    {
        foreach (Order other in kept)
        {
            if (IsSame(other, order)) return true;
        }
        return false;
    }

    private static bool IsSame(Order left, Order right) => left.Id == right.Id && left.Customer == right.Customer && left.Sku == right.Sku;
}
