// The demo: a shop works through a day of orders. Small, but made of the same parts as real programs: parsing, LINQ, dictionaries, an async
// pipeline, threads with locks, exceptions, native calls, JSON. Some of it is slower than it need be; the point is to find out where.
// Its output depends only on the number of orders.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;

namespace Shop;

internal static class Program
{
    private const int DefaultOrders = 24_000;

    private static async Task<int> Main(string[] args)
    {
        int count = args.Length > 0 && int.TryParse(args[0], out int asked) && asked is > 0 and <= 1_000_000 ? asked : DefaultOrders;
        var catalog = Catalog.Create();
        IReadOnlyList<string> lines = OrderFeed.Lines(count, catalog);

        var inbox = new Inbox(catalog);
        List<Order> orders = inbox.Read(lines);
        List<Order> unique = Deduplicator.Remove(orders, out int duplicates);

        var checkout = new Checkout(catalog, new Discounts(unique));
        IReadOnlyList<Receipt> receipts = await checkout.ProcessAsync(unique);

        var warehouse = new Warehouse(catalog, workers: 4);
        warehouse.Ship(receipts);

        var report = new Report(inbox, duplicates, receipts, warehouse);
        Console.Write(report.ToText());
        Console.WriteLine(report.ToJson());
        return receipts.Any() ? 0 : 1;
    }
}
