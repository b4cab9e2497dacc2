using System;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Text.Json;

namespace Shop;

internal sealed class Report
{
    private readonly Inbox inbox;
    private readonly int duplicates;
    private readonly IReadOnlyList<Receipt> receipts;
    private readonly Warehouse warehouse;

    public Report(Inbox inbox, int duplicates, IReadOnlyList<Receipt> receipts, Warehouse warehouse)
    {
        this.inbox = inbox;
        this.duplicates = duplicates;
        this.receipts = receipts;
        this.warehouse = warehouse;
    }

    public string ToText()
    {
        string text = $"orders paid {receipts.Count}, sent twice {duplicates}, parcels {warehouse.Parcels}, steps walked {warehouse.Steps}\n";
        foreach ((string reason, int count) in inbox.Rejected) text += $"rejected: {reason} {count}\n";
        foreach (IGrouping<string, Receipt> country in receipts.GroupBy(receipt => receipt.Order.Country).OrderByDescending(Sum).ThenBy(group => group.Key))
        {
            text += $"{country.Key} {country.Count(),6} {Money(Sum(country)),14}\n";
        }
        return text + $"best month {BestMonth()}, best customer {BestCustomer()}\n" + $"total {Money(Sum(receipts))}\n";
    }

    public string ToJson() => JsonSerializer.Serialize(new
    {
        paid = receipts.Count,
        total_in_cents = Sum(receipts),
        tax_in_cents = receipts.Sum(receipt => receipt.TaxInCents),
        discount_in_cents = receipts.Sum(receipt => receipt.DiscountInCents),
        shipped = warehouse.Shipped,
    });

    private string BestMonth() => receipts.GroupBy(receipt => receipt.Order.Day.Month)
        .OrderByDescending(Sum).Select(group => new DateOnly(2025, group.Key, 1).ToString("MMMM", CultureInfo.InvariantCulture)).FirstOrDefault("none");

    private string BestCustomer() => receipts.GroupBy(receipt => receipt.Order.Customer)
        .OrderByDescending(Sum).ThenBy(group => group.Key, StringComparer.Ordinal).Select(group => group.Key).FirstOrDefault("nobody");

    private static long Sum(IEnumerable<Receipt> group) => group.Sum(receipt => receipt.Total);

    private static string Money(long cents) => (cents / 100m).ToString("N2", CultureInfo.InvariantCulture);
}
