//! Names on the command line: as reports print them, as people remember them, and misspelt.

mod common;

use common::{TestFolder, sample, write_packed};
use serde_json::Value;

fn place() -> TestFolder {
    let place = TestFolder::new();
    let mut recording = sample();
    // As the agent writes it.
    let pay = &mut recording.processes[0].functions[4];
    pay.signature.push_str(" (async)");
    write_packed(&recording, &place.file("shop.clrs"));
    place
}

/// The names of the functions that a pattern finds; what stderr says where it finds none.
fn found(place: &TestFolder, pattern: &str) -> Result<Vec<String>, String> {
    let args = ["report", "shop.clrs", "--view", "functions", "--format", "json", "--function", pattern];
    let output = place.clrscope(args).output().expect("it runs");
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(1), "{pattern}");
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    Ok(rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect())
}

#[test]
fn a_function_is_found_by_any_name_that_a_report_prints_and_by_its_own_name_alone() {
    let place = place();
    for pattern in [
        "Pay",
        "*Pay*",
        "Checkout.Pay",
        "Checkout::Pay",
        "Shop.Checkout.Pay",
        "Shop.Checkout::Pay",
        "Shop.Checkout.Pay(Order)",
        "Shop.Checkout.Pay(Order) (async)",
        "Shop.Checkout::Pay (async)",
        "[Shop]Pay",
        "pay",
        "shop.checkout::PAY",
    ] {
        assert_eq!(found(&place, pattern), Ok(vec!["Shop.Checkout::Pay".to_owned()]), "{pattern}");
    }
    assert_eq!(found(&place, "[JIT]"), Ok(vec!["[JIT]".to_owned()]));
    assert_eq!(found(&place, "System.Threading.*"), Ok(vec!["System.Threading.Monitor::Wait".to_owned()]));
}

#[test]
fn a_name_that_is_nowhere_is_the_same_error_in_every_view_with_the_nearest_names() {
    let place = place();
    let said = found(&place, "Checkout.Pya").expect_err("nothing");
    assert!(said.contains("did you mean 'Shop.Checkout::Pay'?"), "{said}");
    for view in ["summary", "functions", "tree", "callers", "callees", "threads", "modules"] {
        for filter in ["--module Shpo", "--function Pya"] {
            let output = place.run(&format!("report shop.clrs --view {view} {filter}"));
            let said = String::from_utf8_lossy(&output.stderr);
            // Views that take no such filter refuse it; callers need a function to be about.
            let is_refused = output.status.code() == Some(2);
            assert!(is_refused || output.status.code() == Some(1), "{view} {filter}: {:?} {said}", output.status);
            assert!(output.stdout.is_empty() && said.lines().count() == 3, "{view} {filter}: {said}");
            assert!(is_refused || said.contains("did you mean 'Shop"), "{view} {filter}: {said}");
        }
    }
    for format in ["collapsed", "hst", "csv"] {
        let output = place.run(&format!("export shop.clrs --to {format} --function Pya"));
        assert_eq!(output.status.code(), Some(1), "{format}");
    }
}
