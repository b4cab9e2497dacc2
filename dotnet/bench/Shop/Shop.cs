// A heap like that of a shop: customers with lists of orders, each with a string, and a table of all. The argument is millions of objects.
using System;
using System.Collections.Generic;

namespace Shop;

internal sealed class Customer
{
    public List<Order> Orders = new(3);
    public object? Discount;
}

internal sealed class Order
{
    public string? Number;
    public Customer? By;
    public Order? Previous;
    public long Total;
}

internal static class Program
{
    /// A customer, the list, its array, the discount in a box, and three orders with a string each.
    private const int PerCustomer = 10;
    private static Customer[] customers = [];

    private static int Main(string[] arguments)
    {
        customers = new Customer[int.Parse(arguments[0]) * (1_000_000 / PerCustomer)];
        Order? last = null;
        for (int i = 0; i < customers.Length; i++)
        {
            Customer customer = new() { Discount = i % 100 };
            for (int at = 0; at < 3; at++)
            {
                last = new Order { Number = $"{i}-{at}", By = customer, Previous = last, Total = i };
                customer.Orders.Add(last);
            }
            customers[i] = customer;
        }
        Console.WriteLine($"result {customers.Length} {last?.Number}");
        return 0;
    }
}
