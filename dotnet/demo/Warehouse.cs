using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;

namespace Shop;

/// <summary>Threads that pick and pack and share one shelf book, and the C library's sort for the picking route.</summary>
internal sealed unsafe class Warehouse
{
    private const int Batch = 50;
    private readonly int workers;
    private readonly Dictionary<string, int> aisles;
    private readonly SortedDictionary<string, int> shipped = new(StringComparer.Ordinal);
    private long steps;
    private int parcels;

    public Warehouse(Catalog catalog, int workers)
    {
        this.workers = workers;
        aisles = catalog.Products.Select((product, index) => (product.Sku, index)).ToDictionary(pair => pair.Sku, pair => pair.index * 37 % 240);
    }

    public int Parcels => parcels;

    public long Steps => steps;

    public IReadOnlyDictionary<string, int> Shipped => shipped;

    public void Ship(IReadOnlyList<Receipt> receipts)
    {
        Receipt[][] batches = receipts.Chunk(Batch).ToArray();
        int next = -1;
        var threads = new List<Thread>();
        for (int i = 0; i < workers; i++)
        {
            var thread = new Thread(() =>
            {
                for (int batch = Interlocked.Increment(ref next); batch < batches.Length; batch = Interlocked.Increment(ref next)) Pick(batches[batch]);
            });
            thread.Name = $"picker {i + 1}";
            thread.Start();
            threads.Add(thread);
        }
        foreach (Thread thread in threads) thread.Join();
    }

    private void Pick(Receipt[] batch)
    {
        int[] route = batch.Select(receipt => aisles[receipt.Order.Sku]).ToArray();
        SortRoute(route);
        Interlocked.Add(ref steps, Walk(route));
        foreach (Receipt receipt in batch) Pack(receipt);
    }

    private static void SortRoute(int[] route)
    {
        fixed (int* first = route) Sort(first, route.Length, sizeof(int), &CompareAisles);
    }

    private static long Walk(int[] route)
    {
        long walked = 0;
        for (int i = 1; i < route.Length; i++) walked += route[i] - route[i - 1];
        return walked;
    }

    private void Pack(Receipt receipt)
    {
        string label = Label(receipt.Order);
        lock (shipped)
        {
            shipped[receipt.Order.Country] = shipped.GetValueOrDefault(receipt.Order.Country) + 1;
            parcels += label.Length > 0 ? 1 : 0;
        }
    }

    // Slow on purpose: builds a string piece by piece. The process id keeps the program from using another user's label printer.
    private static string Label(Order order)
    {
        string label = "";
        foreach (char c in order.Customer) label += char.ToUpperInvariant(c);
        for (int i = 0; i < order.Quantity; i++) label += "#" + i;
        return ProcessId() > 0 ? label : "";
    }

    [DllImport("libc", EntryPoint = "qsort")]
    private static extern void Sort(int* items, nint count, nint size, delegate* unmanaged[Cdecl]<int*, int*, int> compare);

    [DllImport("libc", EntryPoint = "getpid")]
    private static extern int ProcessId();

    [UnmanagedCallersOnly(CallConvs = new[] { typeof(CallConvCdecl) })]
    private static int CompareAisles(int* left, int* right) => *left - *right;
}
