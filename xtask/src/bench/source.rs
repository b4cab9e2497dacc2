//! Generates C# source for the compiler to compile: dense, valid, and always the same for the same
//! seed and size.
//!
//! Binding keeps a compiler busy: overloads, generics, lambdas, queries, patterns, interpolation.
//! Each class has a few methods made from such parts, with different names and constants, so that
//! caches don't help.

use std::fmt::Write as _;

/// A linear congruential generator: the text must not change with a library's version.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len() as u64) as usize]
    }
}

const HEAD: &str = "using System; using System.Collections.Generic; using System.Linq; using System.Text; using System.Threading.Tasks;
namespace Dense;
public interface IScore<T> { T Score(T value); string Name => typeof(T).Name; }
public abstract record Shape(string Tag) { public abstract double Area(); }
public sealed record Disc(string Tag, double Radius) : Shape(Tag) { public override double Area() => Math.PI * Radius * Radius; }
public sealed record Box(string Tag, double Width, double Height) : Shape(Tag) { public override double Area() => Width * Height; }
public static class Start { public static void Main() => Console.WriteLine(Class0.Sum(3)); }
";

/// C# source of about `bytes` bytes, with a `Main`.
pub(crate) fn csharp(seed: u64, bytes: usize) -> String {
    let mut dice = Dice(seed);
    let mut text = HEAD.to_owned();
    let mut number = 0;
    while text.len() < bytes {
        class(&mut text, &mut dice, number);
        number += 1;
    }
    text
}

fn class(text: &mut String, dice: &mut Dice, number: u64) {
    let _ = writeln!(
        text,
        "public partial class Class{number} : IScore<int>, IScore<string>, IComparable<Class{number}> {{
  public int Alpha {{ get; set; }} = {}; public string Beta {{ get; init; }} = \"{}\"; private readonly Dictionary<string, List<(int Key, double Value)>> table = new();
  public int Score(int value) => value * Alpha + {}; public string Score(string value) => $\"{{value}}:{{Beta,-8}}:{{Alpha:X4}}\";
  public int CompareTo(Class{number}? other) => other is null ? 1 : Alpha.CompareTo(other.Alpha);
  public static long Sum(int n) {{ var c = new Class{number} {{ Alpha = n }}; long s = 0; foreach (var p in c.Pairs(n)) s += p.Key + (long)p.Value; return s; }}
  public IEnumerable<(int Key, double Value)> Pairs(int n) {{ for (int i = 0; i < n; i++) {{ if (i % {} == 0) continue; yield return (i, Math.Sqrt(i) * {}.5); }} }}",
        dice.roll(1000),
        dice.pick(&["north", "south", "east", "west"]),
        dice.roll(100),
        2 + dice.roll(5),
        dice.roll(50),
    );
    for method in 0..4 + dice.roll(5) {
        self::method(text, dice, number, method);
    }
    text.push_str("}\n");
}

fn method(text: &mut String, dice: &mut Dice, class: u64, method: u64) {
    let kind = dice.roll(6);
    let (a, b, c) = (dice.roll(90) + 1, dice.roll(900) + 1, dice.roll(9) + 2);
    let older = dice.roll(class + 1);
    let name = format!("M{method}");
    let _ = match kind {
        0 => writeln!(
            text,
            "  public int {name}(int a, string b = \"x{b}\", params int[] rest) {{
    var q = from x in Enumerable.Range(a, {b}) where x % {c} != {} let y = x * {a} + rest.Length select y; var seen = new SortedSet<int>();
    foreach (int y in q) {{ if (!seen.Add(y % {b})) continue; a += b.Length > {c} ? y : -y; }} string all = string.Join('-', seen);
    return all.Length * {c} + seen.Max + (b + all).IndexOf(\"{a}\", StringComparison.Ordinal) + new Class{older}().Score({a});
  }}",
            dice.roll(c)
        ),
        1 => writeln!(
            text,
            "  public T {name}<T, U>(T first, U second, Func<T, U, T> fold) where T : struct, IComparable<T> where U : class, new() {{
    T best = first; var seen = new HashSet<T>(); for (int i = 0; i < {c}; i++) {{ T next = fold(best, second); if (next.CompareTo(best) > 0 && seen.Add(next)) best = next; else second = new U(); }}
    Func<int, Func<int, int>> add = x => y => x + y + {b}; return add({a})(seen.Count) > {c} ? best : fold(first, second);
  }}"
        ),
        2 => writeln!(
            text,
            "  public string {name}(object value) => value switch {{
    null => \"none\", int i when i > {b} && i % {c} == 0 => $\"big {{i:N0}} of {{Alpha}}\", int i => (i + {a}).ToString(), string {{ Length: > {c} }} s => s.Substring(1, {c}) + Beta,
    Disc {{ Radius: var r }} d => $\"{{d.Tag}}/{{r * {a}.25:F2}}/{{d.Area()}}\", Box(var t, > {a}.0, var h) => t + h, IEnumerable<int> many => string.Join(\",\", many.Skip({c}).Take({a}).Select(m => m ^ {b})),
    (int x, string y) => y + x, _ => value.ToString() ?? nameof({name}) }};"
        ),
        3 => writeln!(
            text,
            "  public async Task<Dictionary<string, double>> {name}(IReadOnlyList<Shape> shapes, int depth = {c}) {{
    var result = new Dictionary<string, double>(StringComparer.Ordinal) {{ [\"k{a}\"] = {b}.75, [nameof({name})] = Math.Max(depth, {a}) }};
    foreach (var (tag, area) in shapes.Where(s => s is Disc or Box {{ Width: > {c} }}).Select(s => (s.Tag, Area: s.Area())).OrderBy(p => p.Area).ThenByDescending(p => p.Tag))
    {{ await Task.Delay(depth); result[tag + depth] = result.TryGetValue(tag, out var old) ? old + area : area * {a}; }}
    try {{ if (depth > 0) foreach (var p in await {name}(shapes, depth - 1)) result[p.Key] = p.Value; }} catch (InvalidOperationException e) when (e.Message.Length > {b}) {{ result.Clear(); }} finally {{ Alpha ^= {b}; }}
    return result;
  }}"
        ),
        4 => writeln!(
            text,
            "  public unsafe long {name}(Span<byte> data, ReadOnlySpan<char> text, ref int state) {{
    long sum = {b}L << {c}; for (int i = 0, j = data.Length - 1; i < j; i++, j--) {{ (data[i], data[j]) = (data[j], data[i]); sum += (data[i] * {a}) ^ (sum >> {c}); }}
    switch (text.Length) {{ case 0: return sum; case {c}: case {a} + 100: state += (int)sum; goto default; default: foreach (var ch in text) state = unchecked(state * 31 + ch); break; }}
    int Local(int n) => n <= 1 ? {a} : Local(n - 1) + Local(n - 2) + this.Score(n); decimal m = {b}.{a}m; return checked(sum + Local({c}) + (long)(m * {c}));
  }}"
        ),
        _ => writeln!(
            text,
            "  public StringBuilder {name}(params (string Name, int? Count)[] items) {{
    var b = new StringBuilder(); var index = items.ToLookup(i => i.Count ?? {a}, i => i.Name?.Trim().ToUpperInvariant() ?? \"\"); table.Clear();
    foreach (var g in index) {{ var list = table.TryGetValue(g.First(), out var l) ? l : table[g.First()] = new(); list.AddRange(g.Select((n, k) => (k + {b}, n.Length / {c}.0))); b.Append(g.Key).Append(' ').AppendFormat(\"{{0:D3}}|{{1}}\", g.Count(), string.Concat(g)); }}
    Action<int> show = v => b.Append(v is > {a} and < 1{b}00 ? 'y' : 'n'); for (var i = {c}; i-- > 0;) show(i * {a}); b.Append(Class{older}.Sum({c})); return b.Replace(\"{a}\", \"{b}\");
  }}"
        ),
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_same_seed_gives_the_same_text_and_another_seed_another() {
        let text = super::csharp(7, 20_000);
        assert_eq!(text, super::csharp(7, 20_000));
        assert_ne!(text, super::csharp(8, 20_000));
        assert!((20_000..30_000).contains(&text.len()));
    }
}
