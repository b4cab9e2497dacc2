//! A program whose source says how often its lines run.

/// Source of the program, for a single file: a line with a remark is reached so often.
pub const COUNTED: &str = r#"
using System;
static class Program
{
    static int Twice(int x)
    {
        if (x > 100) // 50
            return x; // 0
        return 2 * x; // 50
    }
    static void Main()
    {
        int sum = 0; // 1
        for (int i = 0; i < 50; i++)
            sum += Twice(i); // 50
        Console.WriteLine(sum); // 1
    }
}
"#;

/// Lines with remarks, each with the number that it has.
pub fn said_hits() -> Vec<(u64, u64)> {
    let lines = (1..).zip(COUNTED.lines());
    lines.filter_map(|(number, line)| Some((number, line.split_once("// ")?.1.parse().expect("a number")))).collect()
}
