//! The fixture `Covered` says itself, line by line, what is a branch.

use std::collections::BTreeMap;
use std::path::Path;

use clrscope_contract::instruments::check;
use clrscope_contract::request::InstrumentRequest;
use clrscope_coverage::{CounterPlace, Files, MethodPlan, Module, Opener, PlanOptions};

fn fixture() -> (Module, String) {
    let module = Opener::default().open(&clrscope_testkit::fixture("Covered"), None).expect("the fixture has a PDB");
    let source = clrscope_testkit::workspace_root().join("dotnet/fixtures/Covered/Covered.cs");
    (module, std::fs::read_to_string(source).expect("the fixture's source"))
}

fn plans(module: &Module) -> Vec<MethodPlan> {
    let own = module.documents().iter().position(|path| path.ends_with("/Covered.cs")).expect("the document") as u32;
    let plans = module.methods().filter_map(|token| module.plan(token));
    plans.filter(|plan| plan.points.iter().all(|point| point.file == own)).collect()
}

/// Lines with their branches, as the source says.
fn expected(source: &str) -> BTreeMap<u32, usize> {
    let said = (1..).zip(source.lines()).filter_map(|(number, line)| {
        let (_, said) = line.rsplit_once("// ")?;
        Some((number, said.strip_suffix(" branches")?.parse().ok()?))
    });
    said.collect()
}

#[test]
fn lines_have_the_branches_that_their_author_wrote_and_no_others() {
    let (module, source) = fixture();
    let mut found: BTreeMap<u32, usize> = BTreeMap::new();
    for branch in plans(&module).iter().flat_map(|plan| &plan.branches) {
        *found.entry(branch.line).or_default() += 1;
    }
    assert_eq!(found, expected(&source));
}

#[test]
fn what_an_attribute_leaves_out_has_no_line_and_all_else_has() {
    let (module, source) = fixture();
    let plans = plans(&module);
    let has_line = |number: u32| {
        let mut points = plans.iter().flat_map(|plan| &plan.points);
        points.any(|point| (point.start_line..=point.end_line).contains(&number))
    };
    let mut is_left_out = false;
    let mut seen = [0, 0];
    for (number, line) in (1..).zip(source.lines()) {
        match line.trim() {
            "// left out" => is_left_out = true,
            "// counted" => is_left_out = false,
            _ => {}
        }
        // Statements, which stand in methods.
        if line.starts_with("        ") && line.trim_end().ends_with(';') {
            assert_eq!(has_line(number), !is_left_out, "{number}: {line}");
            seen[usize::from(is_left_out)] += 1;
        }
    }
    assert!(seen[0] > 40 && seen[1] > 3, "{seen:?}");
}

#[test]
fn lambdas_local_functions_and_state_machines_belong_to_the_methods_they_were_written_in() {
    let (module, _) = fixture();
    let mut sources: BTreeMap<String, usize> = BTreeMap::new();
    for plan in plans(&module) {
        let source = module.source(plan.token);
        *sources.entry(format!("{}.{}{}", source.class, source.name, source.parameters)).or_default() += 1;
    }
    assert!(sources.keys().all(|name| !name.contains("MoveNext") && !name.contains(">b__")), "{sources:?}");
    assert_eq!(sources.get("Covered.Lambdas.Doubled(int[])"), Some(&2), "{sources:?}");
    assert_eq!(sources.get("Covered.Lambdas.Local(int)"), Some(&2), "{sources:?}");
    assert_eq!(sources.get("Covered.Machines.Evens(int)"), Some(&1), "{sources:?}");
    assert_eq!(sources.get("Covered.Lambdas.Later(int)"), Some(&2), "its lambda is a machine: {sources:?}");
    assert_eq!(sources.get("Covered.Machines.Closed(int)"), Some(&2), "its `finally` block is a method: {sources:?}");
    assert!(sources.keys().all(|name| !name.contains("m__Finally")), "{sources:?}");
    assert_eq!(sources.get("Covered.Box<T>.Largest(IEnumerable<T>)"), Some(&2), "{sources:?}");
}

#[test]
fn a_plan_is_the_same_however_often_it_is_made_and_differs_where_the_method_does() {
    let (module, _) = fixture();
    let (first, again) = (plans(&module), plans(&fixture().0));
    assert_eq!(first, again);
    let prints: Vec<u64> = first.iter().map(MethodPlan::fingerprint).collect();
    let mut distinct = prints.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), prints.len(), "each method has lines of its own");
}

#[test]
fn damaged_assemblies_have_no_plan_and_end() {
    let path = clrscope_testkit::fixture("Covered");
    let image = std::fs::read(&path).expect("the fixture");
    let read = |bytes: Vec<u8>| {
        let assembly = clr_metadata::Assembly::read(bytes).ok()?;
        let pdb = Files::default().pdb_of(&assembly, Path::new("/nonexistent/Covered.dll")).ok()?;
        Module::new(assembly, pdb).ok()
    };
    for length in (0..image.len()).step_by(1009) {
        // The answer doesn't matter: the call returns.
        let _ = read(image[..length].to_vec()).map(|module| plans_of_all(&module));
    }
    let mut seed = 1_u64;
    for _ in 0..60 {
        let mut bytes = image.clone();
        for _ in 0..40 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 20) as u8;
        }
        let _ = read(bytes).map(|module| plans_of_all(&module));
    }
}

fn plans_of_all(module: &Module) -> usize {
    module.methods().filter_map(|token| module.plan(token).map(|plan| (plan, module.source(token)))).count()
}

/// Local functions and lambdas with the attribute, and others within them: all that is left out
/// says so.
const CLOSURES: &str = "using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Out = System.Diagnostics.CodeAnalysis.ExcludeFromCodeCoverageAttribute;

static class Closures
{
    static async Task Main()
    {
        [Out] static Func<string, bool> Lambda()
        {
            Func<string, bool> within = text =>
            {
                return text.Length == 10; // out
            };
            return within; // out
        }
        [Out] int Deep(int number)
        {
            return Inner(number); // out
            int Inner(int other)
            {
                return Innermost() + other; // out
                int Innermost() => number; // out
            }
        }
        [Out] IEnumerable<int> Iterator()
        {
            try
            {
                yield return 1; // out
            }
            finally
            {
                Console.Write(string.Empty); // out
            }
        }
        [Out] async Task Async()
        {
            Func<Task> within = async () =>
            {
                await Task.Yield(); // out
            };
            await within(); // out
        }
        Func<Task> lambda = [Out] async () =>
        {
            await Task.Yield(); // out
        };
        int Counted(int number)
        {
            Func<int, int> within = other =>
            {
                return other + number; // in
            };
            return within(number); // in
        }
        Lambda()(string.Empty); // in
        Deep(Counted(1)); // in
        Iterator().ToList(); // in
        await Async(); // in
        await lambda(); // in
    }
}
";

#[test]
fn exclude_local_function() {
    let Some(sdk) = clrscope_testkit::Sdk::find() else {
        return clrscope_testkit::not_run("no .NET SDK is at hand");
    };
    let place = clrscope_testkit::scratch();
    let [source, library] = ["Closures.cs", "Closures.dll"].map(|name| place.path().join(name));
    std::fs::write(&source, CLOSURES).expect("a file");
    let mut compiler = sdk.compiler_to(&library);
    compiler.args(["-debug:portable", "-optimize-"]).arg(&source);
    clrscope_testkit::run(compiler).expect_success();
    let module = Opener::default().open(&library, None).expect("it has a PDB");
    let plans: Vec<MethodPlan> = module.methods().filter_map(|token| module.plan(token)).collect();
    let counted = |line: u32| plans.iter().flat_map(|plan| &plan.points).any(|point| point.start_line == line);
    for (number, line) in (1..).zip(CLOSURES.lines()) {
        if let Some((_, said)) = line.rsplit_once("// ") {
            assert_eq!(counted(number), said == "in", "{number}: {line}");
        }
    }
}

/// An exception and a number lie on the stack while others are called, and nothing at the
/// beginnings of methods.
const VALUES: &str = "using System;
static class Values
{
    static void Say(string text) => Console.WriteLine(text);
    static int Divide(int by)
    {
        int all = Environment.TickCount;
        Say(\"dividing\"); // values
        return all / by; // values
    }
    static void Main()
    {
        try
        {
            Divide(0);
        }
        catch (Exception exception)
        {
            Say(exception.Message); // values
            throw exception; // values
        }
    }
}
";

#[test]
fn counters_know_whether_the_method_has_values_on_the_stack() {
    let Some(sdk) = clrscope_testkit::Sdk::find() else {
        return clrscope_testkit::not_run("no .NET SDK is at hand");
    };
    let place = clrscope_testkit::scratch();
    let [source, program] = ["Values.cs", "Values.dll"].map(|name| place.path().join(name));
    std::fs::write(&source, VALUES).expect("a file");
    let mut compiler = sdk.compiler_to(&program);
    compiler.args(["-debug:portable", "-optimize+"]).arg(&source);
    clrscope_testkit::run(compiler).expect_success();
    let module = Opener::default().open(&program, None).expect("it has a PDB");
    let mut seen = 0;
    for plan in module.methods().filter_map(|token| module.plan(token)) {
        let counters = module.counters(&plan);
        assert_eq!(counters.places.len(), counters.has_values.len());
        for (place, has_values) in counters.places.iter().zip(&counters.has_values) {
            let CounterPlace::Before(offset) = place else { panic!("{place:?}") };
            let Some(point) = plan.points.iter().find(|point| point.il_offset == *offset) else { continue };
            let line = VALUES.lines().nth(point.start_line as usize - 1).expect("a line");
            // A handler begins with the exception.
            let is_handler = line.contains("catch");
            assert_eq!(*has_values, line.contains("// values") || is_handler, "{line}");
            seen += usize::from(line.contains("// values"));
        }
    }
    assert_eq!(seen, 4);
}

#[test]
fn damaged_assemblies_are_read_with_all_options() {
    let request = "coverage:does-not-return=DoesNotReturn,skip-auto-props";
    let request = check(&InstrumentRequest::parse(request).expect("well formed")).expect("known options");
    let place = clrscope_testkit::scratch();
    let source = clrscope_testkit::fixture("Covered");
    let path = place.path().join("Covered.dll");
    let image = std::fs::read(&source).expect("the fixture");
    let (mut seed, mut planned) = (7_u64, 0);
    for round in 0..60 {
        let mut bytes = image.clone();
        // The first one is whole.
        for _ in 0..round {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 20) as u8;
        }
        std::fs::write(&path, &bytes).expect("a file");
        let opened = Opener::new(PlanOptions::from_request(&request)).open(&path, Some(&path));
        planned += opened.map(|module| plans_of_all(&module)).unwrap_or_default();
    }
    assert!(planned > 20, "{planned}");
}
