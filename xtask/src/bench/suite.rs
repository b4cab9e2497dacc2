//! A test suite under `dotnet test`: with coverage by clrscope, by coverlet and by Microsoft's
//! collector, and without.

use std::fs;
use std::path::Path;
use std::process::Command;

use clrscope_testkit::{Sdk, scratch};

use super::absolute::Line;
use crate::agents::under_agent;
use crate::measured::{Spread, run};
use crate::programs::{TEST_PACKAGES, take_packages_of_kit};

/// Subject of a measurement.
#[derive(Clone, Copy)]
enum Of {
    /// The whole of `dotnet test`.
    Command,
    /// Time that the test says its own work took, without the start of the host and of the
    /// collector.
    Test,
}

/// Kinds of tests: the title, the filter of `dotnet test`, whose CPU time counts, the most that
/// each of our two ways may take, and the most pairs. A tight loop takes minutes with coverlet.
const TESTS: [(&str, &str, Of, [f64; 2], usize); 2] = [
    ("ordinary tests", "FullyQualifiedName~Ordinary", Of::Command, [1.05; 2], usize::MAX),
    ("a tight loop", "FullyQualifiedName~Loop", Of::Test, [2.0, 1.1], 3),
];

/// Variable with the file that a test writes its CPU time to.
const WORK_FILE: &str = "WORK_FILE";

/// Way to collect coverage.
#[derive(Clone, Copy)]
enum Collector {
    None,
    /// Our agent, with this request.
    Ours(&'static str),
    /// A collector of `dotnet test`, by its name there.
    Theirs(&'static str),
}

/// The packages of the others' collectors.
const PEERS: [(&str, &str); 2] = [("coverlet.collector", "8.0.1"), ("Microsoft.CodeCoverage", "18.11.0")];

const COLLECTORS: [(&str, Collector); 5] = [
    ("no coverage", Collector::None),
    ("`coverage`", Collector::Ours("coverage")),
    ("`coverage:hits=off`", Collector::Ours("coverage:hits=off")),
    ("coverlet", Collector::Theirs("XPlat Code Coverage")),
    ("Microsoft's collector", Collector::Theirs("Code Coverage")),
];

const LIBRARY: &str = "
namespace Covered;

public static class Work
{
    public static int Odd(int end)
    {
        int sum = 0;
        for (int i = 0; i < end; i++)
        {
            if (IsOdd(i))
            {
                sum += i;
            }
            else
            {
                sum--;
            }
        }
        return sum;
    }

    private static bool IsOdd(int number)
    {
        return (number & 1) == 1;
    }

    public static string Words(int count)
    {
        var words = new Dictionary<string, List<int>>();
        for (int i = 0; i < count; i++)
        {
            string word = (i * 7919 % 1000).ToString();
            if (!words.TryGetValue(word, out List<int>? places))
            {
                words[word] = places = new List<int>();
            }
            places.Add(i);
        }
        return string.Join(',', words.OrderBy(pair => pair.Value.Count).ThenBy(pair => pair.Key).Take(5).Select(pair => pair.Key));
    }
}
";

const TESTS_SOURCE: &str = "
using System.Diagnostics;
using Covered;
using Xunit;

public class Ordinary
{
    [Fact]
    public void Counts()
    {
        string first = Work.Words(1000);
        for (int i = 0; i < 300; i++)
        {
            Assert.NotEqual(first, Work.Words(10_000) + i);
        }
    }
}

public class Loop
{
    [Fact]
    public void Sums()
    {
        // Until the compiler has done all that it will do.
        for (int i = 0; i < 100; i++)
        {
            Work.Odd(100_000);
        }
        Thread.Sleep(1000);
        Work.Odd(100_000);
        TimeSpan before = UserTime();
        for (int i = 0; i < 30; i++)
        {
            Assert.NotEqual(1, Work.Odd(10_000_000));
        }
        TimeSpan took = UserTime() - before;
        File.WriteAllText(Environment.GetEnvironmentVariable(\"WORK_FILE\")!, took.TotalSeconds.ToString(\"R\"));
    }

    private static TimeSpan UserTime()
    {
        using var self = Process.GetCurrentProcess();
        return self.UserProcessorTime;
    }
}
";

/// Seconds that the last test said it took.
fn work(folder: &Path) -> Result<f64, String> {
    let file = folder.join(WORK_FILE);
    let said = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    said.trim().parse().map_err(|_| format!("{}: '{said}' is no number", file.display()))
}

/// Lines of the report: user CPU time with each collector, divided by the time without. Empty if
/// there is no SDK, or its packages are not available.
pub(super) fn beside_peers(pairs: usize) -> Result<Vec<Line>, String> {
    let Some(sdk) = Sdk::find() else { return Ok(Vec::new()) };
    let folder = scratch();
    if !build(&sdk, folder.path())? {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for (title, filter, of, most, pairs_at_most) in TESTS {
        let mut times = vec![Vec::new(); COLLECTORS.len()];
        for _ in 0..pairs.min(pairs_at_most) {
            for ((_, collector), times) in COLLECTORS.iter().zip(&mut times) {
                let whole = run(&mut tests(&sdk, folder.path(), filter, *collector))?.user.as_secs_f64();
                times.push(match of {
                    Of::Command => whole,
                    Of::Test => work(folder.path())?,
                });
            }
        }
        let mut limits = most.into_iter();
        for ((name, collector), times_with) in COLLECTORS.iter().zip(&times).skip(1) {
            let ratios: Vec<f64> = times_with.iter().zip(&times[0]).map(|(with, bare)| with / bare).collect();
            let spread = Spread::from_values(&ratios);
            let limit = matches!(collector, Collector::Ours(_)).then(|| limits.next()).flatten();
            let verdict = limit.map_or("", |limit| if spread.median <= limit { "met" } else { "**missed**" });
            let figure = format!("{:.2} ({:.2} to {:.2})", spread.median, spread.low, spread.high);
            lines.push(("P8", format!("`dotnet test`, {title}, {name} / no coverage"), figure, verdict));
        }
    }
    Ok(lines)
}

/// Writes the projects and builds them; false where packages are missing.
fn build(sdk: &Sdk, folder: &Path) -> Result<bool, String> {
    let common = format!(
        "<TargetFramework>net{}.0</TargetFramework><Nullable>enable</Nullable><ImplicitUsings>enable</ImplicitUsings>\
         <NoWarn>$(NoWarn);NETSDK1188</NoWarn>",
        sdk.version.major
    );
    let library = format!("<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup>{common}</PropertyGroup></Project>");
    let package = |(name, version)| format!("<PackageReference Include=\"{name}\" Version=\"{version}\"/>");
    let packages: String = TEST_PACKAGES.into_iter().chain(PEERS).map(package).collect();
    let tests = format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup>{common}</PropertyGroup><ItemGroup>{packages}\
         <ProjectReference Include=\"../Library/Library.csproj\"/></ItemGroup></Project>"
    );
    for (name, content) in [
        ("Library/Library.csproj", library.as_str()),
        ("Library/Work.cs", LIBRARY),
        ("Tests/Tests.csproj", &tests),
        ("Tests/Tests.cs", TESTS_SOURCE),
    ] {
        let path = folder.join(name);
        let written = fs::create_dir_all(path.parent().unwrap_or(folder)).and_then(|()| fs::write(&path, content));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    take_packages_of_kit(folder)?;
    let mut build = sdk.dotnet(folder, &["build", "-c", "Release", "Tests/Tests.csproj"]);
    Ok(run(build.current_dir(folder)).is_ok())
}

fn tests(sdk: &Sdk, folder: &Path, filter: &str, collector: Collector) -> Command {
    let words = ["test", "--no-build", "-c", "Release", "Tests/Tests.csproj", "--filter", filter];
    let mut command = sdk.dotnet(folder, &words);
    command.current_dir(folder).env(WORK_FILE, folder.join(WORK_FILE));
    match collector {
        Collector::None => {}
        Collector::Ours(request) => {
            let out = folder.join("ours.clrs.d");
            // What the run before recorded is not needed any more.
            drop(fs::remove_dir_all(&out));
            under_agent(&mut command, request, &out);
        }
        Collector::Theirs(name) => _ = command.args(["--collect", name]),
    }
    command
}
