using System;
using System.Collections.Generic;

namespace Shop;

internal sealed record Order(int Id, string Customer, string Country, DateOnly Day, string Sku, int Quantity, string Coupon);

internal sealed record Product(string Sku, string Name, string Category, long PriceInCents, int Grams);

internal sealed record Receipt(Order Order, long NetInCents, long DiscountInCents, long TaxInCents, long ShippingInCents)
{
    public long Total => NetInCents - DiscountInCents + TaxInCents + ShippingInCents;
}

internal sealed class InvalidOrderException : Exception
{
    public InvalidOrderException(string reason, Exception? inner = null)
        : base(reason, inner)
    {
    }
}

internal sealed class PaymentDeclinedException : Exception
{
    public PaymentDeclinedException(Order order)
        : base($"payment for order {order.Id} declined")
    {
    }
}

internal sealed class Catalog
{
    private static readonly string[] Categories = { "Books", "Games", "Garden", "Kitchen", "Music", "Office", "Sports", "Toys" };
    private readonly Dictionary<string, Product> products = new();

    public IReadOnlyCollection<Product> Products => products.Values;

    public static Catalog Create()
    {
        var catalog = new Catalog();
        var random = new Lcg(7);
        for (int i = 0; i < 240; i++)
        {
            string category = Categories[i % Categories.Length];
            string sku = $"{category[..2].ToUpperInvariant()}-{1000 + i}";
            catalog.products.Add(sku, new Product(sku, $"{category} item {i}", category, 199 + random.Next(20_000), 50 + random.Next(4_000)));
        }
        return catalog;
    }

    public Product Find(string sku) => products.TryGetValue(sku, out Product? product) ? product : throw new InvalidOrderException("unknown product");
}

/// <summary>A random generator whose numbers are always the same, on any machine.</summary>
internal sealed class Lcg
{
    private ulong state;

    public Lcg(ulong seed) => state = seed * 2 + 1;

    public int Next(int below)
    {
        state = state * 6364136223846793005 + 1442695040888963407;
        return (int)((state >> 33) % (ulong)below);
    }
}
