//! Counters, against what a program adds itself and what its own listeners hear.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_analysis::{CounterKind, CounterRow, Query, counters};
use clrscope_recording::model::Recording;
use clrscope_testkit::{
    Service, attempted, each_runtime, each_web_runtime, fixture, get, load, run, scratch, wait_for,
};

use crate::support::{record_with, under_agent};

/// What the program prints behind a word: names and numbers.
fn printed(output: &str, word: &str) -> BTreeMap<String, f64> {
    let parse = |line: &str| {
        let (name, number) = line.strip_prefix(word)?.strip_prefix(' ')?.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().expect("a number")))
    };
    output.lines().filter_map(parse).collect()
}

fn rows(recording: &Recording) -> BTreeMap<String, CounterRow<'_>> {
    let (rows, _) = counters(recording, &Query::default(), &[]).expect("counters");
    rows.into_iter().map(|row| (row.full_name(), row)).collect()
}

/// Event counters of each kind from their first value on; meters from a moment behind their making.
#[test]
fn counters_have_what_the_program_adds_to_them() {
    each_runtime(|runtime| {
        let outcome = attempted(|| {
            let run = record_with(runtime, "Counts", "counters", &["30"]);
            let added = printed(&run.finished.expect_success().stdout_text(), "ADDED");
            let rows = rows(&run.recording);
            let total = |name: &str| rows.get(name).and_then(|row| row.total);
            for name in ["sales", "steps"] {
                assert_eq!(total(&format!("Counts.Source/{name}")), Some(added[name]), "on {}", runtime.version);
            }
            let [sizes, level] = ["sizes", "level"].map(|name| &rows[&format!("Counts.Source/{name}")]);
            assert_eq!((sizes.kind, sizes.count, sizes.mean()), (CounterKind::Gauge, added["sizes"] as u64, 15.0));
            assert_eq!((sizes.unit.as_str(), level.unit.as_str(), level.value()), ("MB", "cm", 42.5));
            let of_runtime = ["cpu-usage", "working-set", "gc-heap-size", "threadpool-thread-count", "assembly-count"];
            for name in of_runtime {
                assert!(rows.contains_key(&format!("System.Runtime/{name}")), "{name}: {:?}", rows.keys());
            }
            let loaded = &rows["System.Runtime/working-set"];
            assert!((10.0..500.0).contains(&loaded.value()), "{loaded:?}");

            // On a busy machine the listener may come later than the program waits for it.
            let meters = [("orders{kind=new}", "orders/new"), ("orders{kind=old}", "orders/old"), ("prices", "prices")];
            for (name, printed) in meters.into_iter().chain([("open", "open")]) {
                if total(&format!("Counts.Shop/{name}")) != Some(added[printed]) {
                    return Err(format!("{name}: {:?} of {added:?}", total(&format!("Counts.Shop/{name}"))));
                }
            }
            let [prices, open, level] = ["prices", "open", "level"].map(|name| &rows[&format!("Counts.Shop/{name}")]);
            assert_eq!((prices.kind, prices.count), (CounterKind::Histogram, added["prices/count"] as u64));
            assert_eq!((open.kind, open.value()), (CounterKind::UpDownCounter, added["open"]));
            assert_eq!((level.kind, level.value(), level.unit.as_str()), (CounterKind::Gauge, 7.25, "cm"));
            assert!(prices.percentiles.is_some_and(|[half, _, most]| half <= most && most <= 9.5), "{prices:?}");
            Ok(())
        });
        assert_eq!(outcome, Ok(()), "on {}", runtime.version);
    });
}

/// Of the meters that were not chosen there is nothing; event counters are there in any case.
#[test]
fn chosen_meters_have_what_the_program_adds_to_them_and_others_are_not_asked() {
    each_runtime(|runtime| {
        let outcome = attempted(|| {
            let run = record_with(runtime, "Counts", "counters:meters=Counts.Shop", &["30"]);
            let added = printed(&run.finished.expect_success().stdout_text(), "ADDED");
            let rows = rows(&run.recording);
            let sales = rows["Counts.Source/sales"].total;
            assert_eq!(sales, Some(added["sales"]), "on {}", runtime.version);
            let others: Vec<_> = rows.keys().filter(|name| name.starts_with("System.Runtime/dotnet.")).collect();
            assert!(others.is_empty(), "{others:?} on {}", runtime.version);
            // On a busy machine the listener may come later than the program waits for it.
            let orders = rows.get("Counts.Shop/orders{kind=new}").and_then(|row| row.total);
            if orders == Some(added["orders/new"]) { Ok(()) } else { Err(format!("{orders:?} of {added:?}")) }
        });
        assert_eq!(outcome, Ok(()), "on {}", runtime.version);
        let run = record_with(runtime, "Counts", "counters:meters=Another.Shop", &["10"]);
        let rows = rows(&run.recording);
        let shop: Vec<_> = rows.keys().filter(|name| name.starts_with("Counts.Shop/")).collect();
        assert!(shop.is_empty() && rows.contains_key("Counts.Source/sales"), "{shop:?} on {}", runtime.version);
    });
}

/// Intervals and sums of the program's own listeners are as bare.
#[test]
fn listeners_of_the_program_hear_their_counters_as_without_us() {
    each_runtime(|runtime| {
        let heard = |output: &str| -> BTreeSet<String> {
            let lines = output.lines().filter(|line| line.starts_with("HEARD") || line.starts_with("METER"));
            lines.map(str::to_owned).collect()
        };
        let mut bare = runtime.command(&fixture("Counts"));
        bare.args(["40", "listen"]);
        let bare = heard(&run(bare).expect_success().stdout_text());
        let recorded = record_with(runtime, "Counts", "counters", &["40", "listen"]);
        let output = recorded.finished.expect_success().stdout_text();
        assert!(bare.iter().any(|line| line.contains("Counts.Source/sales Interval=2000 2")), "{bare:#?}");
        assert_eq!(heard(&output), bare, "on {}", runtime.version);
        let (added, sums) = (printed(&output, "ADDED"), printed(&output, "SUM"));
        for name in ["sales", "steps"] {
            assert_eq!(sums[&format!("Counts.Source/{name}")], added[name], "on {}", runtime.version);
        }
        // What we get is what the listener gets then.
        let rows = rows(&recorded.recording);
        assert_eq!(rows["Counts.Source/sales"].total, Some(added["sales"]), "on {}", runtime.version);
    });
}

/// Event counters and meters of ASP.NET Core against what a client has asked.
#[test]
fn counters_of_a_web_service_are_the_requests_that_its_client_made() {
    const CLIENTS: usize = 2;
    const EACH: usize = 15;
    const FAILING: usize = 4;
    each_web_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Web"));
        under_agent(&mut command, "counters", &out);
        let service = Service::start(command);
        let address = service.address().to_owned();
        let place = format!("on {}", runtime.version);
        let seen = |suits: &dyn Fn(&BTreeMap<String, CounterRow<'_>>) -> bool| {
            let recording = clrscope_recording::open(&out).ok()?;
            let (rows, _) = counters(&recording, &Query::default(), &[]).ok()?;
            suits(&rows.into_iter().map(|row| (row.full_name(), row)).collect()).then_some(())
        };
        // Durations by route. What a meter measures before it has a listener is lost: until it has
        // one, another route is asked.
        let measured = |rows: &BTreeMap<String, CounterRow<'_>>, route: &str| -> (u64, f64) {
            let of_route = |name: &&String| {
                name.starts_with("Microsoft.AspNetCore.Hosting/http.server.request.duration{")
                    && name.contains(&format!("http.route={route}"))
            };
            let found: Vec<_> = rows.keys().filter(of_route).map(|name| &rows[name]).collect();
            (found.iter().map(|row| row.count).sum(), found.iter().filter_map(|row| row.total).sum())
        };
        let mut asked = 0;
        wait_for("a duration", || {
            asked += 1;
            assert_eq!(get(&address, "/ok"), 200, "{place}");
            seen(&|rows| measured(rows, "/ok").0 > 0)
        });
        assert_eq!(load(&address, "/async", CLIENTS, EACH), CLIENTS * EACH, "{place}");
        (0..FAILING).for_each(|_| assert_eq!(get(&address, "/throw"), 500, "{place}"));
        let all = (asked + CLIENTS * EACH + FAILING) as f64;
        let value = |rows: &BTreeMap<String, CounterRow<'_>>, name: &str| rows.get(name).map(CounterRow::value);
        const TOTAL: &str = "Microsoft.AspNetCore.Hosting/total-requests";
        wait_for("the last interval", || {
            seen(&|rows| value(rows, TOTAL) >= Some(all) && measured(rows, "/throw").0 >= FAILING as u64)
        });
        assert!(service.stop("TERM").status.success(), "{place}");

        let recording = clrscope_recording::open(&out).expect("a recording");
        let rows = rows(&recording);
        assert_eq!(value(&rows, TOTAL), Some(all), "{place}");
        let failed = value(&rows, "Microsoft.AspNetCore.Hosting/failed-requests");
        assert_eq!(failed, Some(FAILING as f64), "{place}");
        let rate = rows["Microsoft.AspNetCore.Hosting/requests-per-second"].total;
        assert_eq!(rate, Some(all), "{place}");
        // Each request has a connection of its own.
        let connections = value(&rows, "Microsoft-AspNetCore-Server-Kestrel/total-connections");
        assert_eq!(connections, Some(all), "{place}");
        let (count, seconds) = measured(&rows, "/async");
        assert_eq!(count, (CLIENTS * EACH) as u64, "{place}: {:?}", rows.keys());
        // The handler waits for a millisecond.
        assert!((0.001 * count as f64..60.0).contains(&seconds), "{seconds} s {place}");
        assert_eq!(measured(&rows, "/throw").0, FAILING as u64, "{place}");
        let statuses: BTreeSet<_> = rows.keys().filter(|name| name.contains("http.route=/throw")).collect();
        assert!(statuses.iter().any(|name| name.contains("http.response.status_code=500")), "{statuses:?}");
    });
}

/// Counters that the documentation names are those that the runtime's own libraries name.
#[test]
fn counters_in_the_documentation_are_in_the_libraries() {
    let text = include_str!("../../../../docs/counters.md");
    let (_, table) = text.split_once("## Counters of the .NET Framework").expect("the tables");
    let (table, _) = table.split_once("### SQL data provider").expect("what can't be tried");
    let is_name = |code: &&str| {
        let is_plain = code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c));
        is_plain && code.contains(['.', '-'])
    };
    let last = |code: &'static str| code.rsplit('/').next().unwrap_or(code);
    let named: BTreeSet<&str> = table.split('`').skip(1).step_by(2).map(last).filter(is_name).collect();
    assert!(named.len() > 45 && named.contains("gc-heap-size") && named.contains("dotnet.exceptions"), "{named:?}");
    each_runtime(|runtime| {
        let version = runtime.version.to_string();
        let mut known = BTreeSet::new();
        for framework in ["Microsoft.NETCore.App", "Microsoft.AspNetCore.App"] {
            let folder = runtime.root.join("shared").join(framework).join(&version);
            let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(|file| Some(file.ok()?.path()));
            let has_counters = |name: &str| {
                ["System.Private.CoreLib.", "System.Net.", "System.Diagnostics.Diag", "Microsoft.AspNetCore.Hosting."]
                    .iter()
                    .any(|start| name.starts_with(start))
            };
            let files = files.filter(|file| file.file_name().is_some_and(|name| has_counters(&name.to_string_lossy())));
            files.for_each(|file| known.extend(texts(&std::fs::read(file).expect("a library"))));
        }
        let is_here = |name: &&&str| {
            let is_of_web = ["requests-per-second", "http.server.request.duration"].contains(*name);
            (runtime.major() > 8 || !name.starts_with("dotnet.")) && (runtime.has_web() || !is_of_web)
        };
        let missing: Vec<_> = named.iter().filter(is_here).filter(|name| !known.contains(**name)).collect();
        assert!(missing.is_empty(), "{missing:?} on {version}");
    });
}

/// Texts of a library's code: runs of letters and the like, of two bytes each.
fn texts(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for from in [0, 1] {
        let mut text = String::new();
        for pair in bytes[from..].chunks_exact(2).chain([&[0, 0][..]]) {
            if pair[1] == 0 && (pair[0].is_ascii_alphanumeric() || b"._-".contains(&pair[0])) {
                text.push(char::from(pair[0]));
            } else if !text.is_empty() {
                found.insert(std::mem::take(&mut text));
            }
        }
    }
    found
}
