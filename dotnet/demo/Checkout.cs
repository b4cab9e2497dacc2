using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

namespace Shop;

/// <summary>A customer's discount: by coupon, and by the value of earlier purchases.</summary>
internal sealed class Discounts
{
    private readonly List<Order> orders;

    public Discounts(List<Order> orders) => this.orders = orders;

    public long For(Order order, long net)
    {
        long loyalty = LoyaltyPercent(order) * net / 100;
        return loyalty + order.Coupon switch
        {
            "SPRING10" when order.Day.Month is >= 3 and <= 5 => net / 10,
            "WELCOME5" => Math.Min(500, net),
            "BULK" when order.Quantity >= 10 => net / 5,
            _ => 0,
        };
    }

    // Slow on purpose: searches all orders each time, where a dictionary would do.
    private int LoyaltyPercent(Order order)
    {
        int bought = orders.Where(other => other.Customer == order.Customer).Where(other => other.Day < order.Day).Sum(other => other.Quantity);
        return bought switch
        {
            > 60 => 5,
            > 30 => 3,
            _ => 0,
        };
    }
}

/// <summary>An async pipeline: price, tax, pay; several orders at once.</summary>
internal sealed class Checkout
{
    private const int Workers = 3;
    private readonly Catalog catalog;
    private readonly Discounts discounts;
    private readonly Dictionary<string, int> taxPerMille = new()
    {
        ["AT"] = 200, ["BR"] = 170, ["CA"] = 50, ["DE"] = 190, ["FR"] = 200, ["IN"] = 180, ["JP"] = 100, ["NL"] = 210, ["SE"] = 250, ["US"] = 70,
    };

    public Checkout(Catalog catalog, Discounts discounts)
    {
        this.catalog = catalog;
        this.discounts = discounts;
    }

    public async Task<IReadOnlyList<Receipt>> ProcessAsync(IEnumerable<Order> orders)
    {
        Channel<Order> queue = Channel.CreateBounded<Order>(256);
        Task<List<Receipt>>[] workers = Enumerable.Range(0, Workers).Select(_ => Task.Run(() => WorkAsync(queue.Reader))).ToArray();
        foreach (Order order in orders) await queue.Writer.WriteAsync(order);
        queue.Writer.Complete();
        List<Receipt>[] results = await Task.WhenAll(workers);
        return results.SelectMany(receipts => receipts).OrderBy(receipt => receipt.Order.Id).ToList();
    }

    private async Task<List<Receipt>> WorkAsync(ChannelReader<Order> queue)
    {
        var receipts = new List<Receipt>();
        await foreach (Order order in queue.ReadAllAsync())
        {
            try
            {
                receipts.Add(await PayAsync(Price(order)));
            }
            catch (PaymentDeclinedException)
            {
                // Declined for good; the customer has been told.
            }
        }
        return receipts;
    }

    private Receipt Price(Order order)
    {
        Product product = catalog.Find(order.Sku);
        long net = product.PriceInCents * order.Quantity;
        long discount = discounts.For(order, net);
        long tax = (net - discount) * taxPerMille[order.Country] / 1000;
        return new Receipt(order, net, discount, tax, Shipping.Cost(order.Country, (long)product.Grams * order.Quantity));
    }

    private static async Task<Receipt> PayAsync(Receipt receipt)
    {
        // The bank declines some at first; a retry may succeed.
        for (int attempt = 0; ; attempt++)
        {
            try
            {
                await Bank.ChargeAsync(receipt, attempt);
                return receipt;
            }
            catch (PaymentDeclinedException) when (attempt == 0)
            {
                await Task.Yield();
            }
        }
    }
}

internal static class Bank
{
    public static async Task ChargeAsync(Receipt receipt, int attempt)
    {
        if (receipt.Order.Id % 64 == 0) await Task.Yield();
        ulong check = Authorise(receipt, attempt);
        if (check % 50 == 0) throw new PaymentDeclinedException(receipt.Order);
    }

    // A stand-in for a signature: CPU work without calls.
    private static ulong Authorise(Receipt receipt, int attempt)
    {
        ulong hash = 14695981039346656037;
        for (int round = 0; round < 6000; round++)
        {
            hash = (hash ^ (ulong)(receipt.Total + attempt + round)) * 1099511628211;
        }
        return hash >> 7;
    }
}

internal static class Shipping
{
    private static readonly string[] Near = { "AT", "DE", "FR", "NL" };

    public static long Cost(string country, long grams)
    {
        long zone = Near.Contains(country) ? 1 : 3;
        return zone * (390 + Steps(grams) * 150);
    }

    // Weight classes: up to 2 kg, then each wider by half than the last, found by recursion.
    private static int Steps(long grams) => grams <= 2000 ? 0 : 1 + Steps(grams * 2 / 3 - 500);
}
