//! `docs/benchmarks.md`. Each line of its tables belongs to a goal, so a new measurement of a goal
//! replaces only the lines of that goal. Below the tables is what was measured by hand, which
//! stays.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clrscope_testkit::workspace_root;

/// A table of the page. The variants are in the order of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    /// Comparisons of two runs.
    Ratios,
    /// Measurements that are not ratios.
    Absolutes,
    /// Days and machines of the measurements.
    Conditions,
}

/// All lines that were measured for one goal.
pub(super) struct Part {
    pub(super) id: &'static str,
    pub(super) lines: Vec<(Table, String)>,
}

/// Lines of the page, by table and goal.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Page {
    lines: BTreeMap<(Table, String), Vec<String>>,
    /// Text below [`BY_HAND`].
    by_hand: String,
}

impl Table {
    const ALL: [Self; 3] = [Self::Ratios, Self::Absolutes, Self::Conditions];

    /// The two lines that a table begins with.
    fn head(self) -> &'static str {
        match self {
            Self::Ratios => {
                "| goal | what | measured | at most | | user CPU s | wall s |\n|---|---|---|---|---|---|---|\n"
            }
            Self::Absolutes => "| goal | what | measured | |\n|---|---|---|---|\n",
            Self::Conditions => {
                "| goal | measured on | machine | load | pairs | repeated |\n|---|---|---|---|---|---|\n"
            }
        }
    }
}

fn path() -> PathBuf {
    workspace_root().join("docs/benchmarks.md")
}

impl Page {
    /// Reads the page; returns an empty page if there is none.
    pub(super) fn read() -> Self {
        Self::parse(&std::fs::read_to_string(path()).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let (mut page, mut table) = (Self::default(), None);
        let (mut rest, by_hand) = text.split_once(BY_HAND).unwrap_or((text, ""));
        by_hand.clone_into(&mut page.by_hand);
        while !rest.is_empty() {
            if let Some(begun) = Table::ALL.into_iter().find(|table| rest.starts_with(table.head())) {
                table = Some(begun);
                rest = &rest[begun.head().len()..];
                continue;
            }
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            rest = after;
            match (table, line.strip_prefix("| ").and_then(|cells| cells.split(" |").next())) {
                (Some(table), Some(id)) => page.add(table, id, line),
                _ => table = None,
            }
        }
        page
    }

    fn add(&mut self, table: Table, id: &str, line: &str) {
        self.lines.entry((table, id.to_owned())).or_default().push(line.to_owned());
    }

    /// Replaces the lines of a goal.
    pub(super) fn replace(&mut self, part: Part) {
        self.lines.retain(|(_, id), _| id != part.id);
        part.lines.iter().for_each(|(table, line)| self.add(*table, part.id, line));
    }

    /// Writes the page. `ids` has all goals in their order; lines of other goals are left out.
    ///
    /// # Errors
    /// A sentence with the file, where it can't be written.
    pub(super) fn write(&self, ids: &[&str]) -> Result<(), String> {
        let path = path();
        std::fs::write(&path, self.text(ids)).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn text(&self, ids: &[&str]) -> String {
        let table = |table: Table| -> String {
            let lines = ids.iter().filter_map(|id| self.lines.get(&(table, (*id).to_owned()))).flatten();
            lines.fold(table.head().to_owned(), |text, line| text + line + "\n")
        };
        let [ratios, absolutes, conditions] = Table::ALL.map(table);
        format!("{HEAD}\n{ratios}\n{absolutes}\n{conditions}\n{NOTES}\n{BY_HAND}{}", self.by_hand)
    }
}

/// Heading of what was measured by hand: the only part of the page to edit.
const BY_HAND: &str = "## Measured by hand\n";

const HEAD: &str = "# Benchmarks

What profiling costs. Written by `cargo xtask bench`, which can repeat it on your machine; do not
edit, except below \"Measured by hand\". `--only P4,P5` measures these and replaces their lines.

Each line of the first table compares two runs of the same program that follow one another: the
median ratio of their user CPU time, in brackets the least and the greatest. Pairs whose second half
took over 20 % longer than the fastest were repeated. Both runs must print the same, and the
compiler must write the same bytes. Seconds are medians; wall time is for information. The last
table says when and where each goal was measured, with how many pairs, and how many programs wanted
a core meanwhile (load).
";

const NOTES: &str = "\
- *Tiny functions*: a recursion that does nothing but call. *Compiler*: the C# compiler on 400 kB of
  generated, dense source, four pool threads. *Libraries*: JSON, XML, regular expressions, LINQ,
  text and tables of the framework.
- *Empty hooks* and *bare clock reads* are profilers that do only that, in every function; `calls`
  leaves out the runtime's helpers unless `helpers=on`. *Empty callbacks* is a profiler that asks
  for every callback about exceptions and does nothing in any: the runtime's own price. *Precompiled
  code off*: any enter hook makes the runtime discard precompiled code and recompile everything.
- *Without tiers*: `DOTNET_TieredCompilation=0` for both. With tiers the runtime decides by the
  clock which methods are compiled again and which are instrumented, so a longer run also does more,
  and no two runs make the same number of calls.
- *Throw and catch*: a program that does nothing else, three methods deep. *Nothing thrown*: calls
  under `try` and `finally`.
- *Callees in turn*: one caller that calls so many functions over and over, each compiled once
  (`DOTNET_TieredCompilation=0`); the CPU time of the calls alone, by the thread's own clock. Many
  slow the program down at most three times as much as one does.
- *Idle threads* sleep beside the work of *libraries*. The time is that of the work by the program's
  own clock, from its first round to its last, with all threads there from the beginning: stopping
  threads costs that time, and no CPU time. *EventPipe's sampler* is the runtime's own at 200 Hz,
  switched on by variables; `dotnet-trace` starts the program with its usual profile. *Web service*:
  as many requests as four connections that are kept open get answered, by a client on the same
  machine.
- *After detach*: ten rounds of *libraries* over and over; the time of ten rounds after the agent
  has left over that before it came.
- Processors: the figures above are of the processors named in the last table. On an Intel Xeon of
  the Sapphire Rapids generation tiny functions took 1.29 times empty hooks (P2) and 1.13 times two
  clock reads (P1) in an earlier measurement, where an AMD EPYC had 1.16 and 1.02.
- Memory per thread, by layout: a record of 256 bytes, 4 KiB of tree and one touched page of shadow
  stack, more as it calls more.
- The machine has no counters of cache misses (a virtual machine); what is known about where the
  compiler's time goes comes from samples of instruction addresses.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &'static str, figure: &str) -> Part {
        let line = |table| (table, format!("| {id} | what | {figure} |"));
        Part { id, lines: Table::ALL.map(line).to_vec() }
    }

    #[test]
    fn what_is_measured_of_a_goal_replaces_that_and_nothing_else() {
        let ids = ["P2", "P1"];
        let mut page = Page::default();
        [part("P1", "1.00"), part("P2", "2.00"), part("P9", "9.00")].into_iter().for_each(|part| page.replace(part));
        "\n| by | hand |\n".clone_into(&mut page.by_hand);
        let text = page.text(&ids);
        assert!(!text.contains("| P9 |") && text.find("| P2 |") < text.find("| P1 |"), "{text}");
        let mut again = Page::parse(&text);
        again.replace(part("P1", "1.50"));
        let text = again.text(&ids);
        assert_eq!(
            [text.matches("1.00").count(), text.matches("1.50").count(), text.matches("| P2 |").count()],
            [0, 3, 3]
        );
        assert!(text.ends_with("\n## Measured by hand\n\n| by | hand |\n"), "what was measured by hand stays: {text}");
    }

    #[test]
    fn the_page_that_is_there_can_be_read() {
        let page = Page::read();
        for table in Table::ALL {
            assert!(page.lines.keys().any(|(in_table, _)| *in_table == table), "{table:?}");
        }
        let measured = page.lines.keys().filter(|(table, _)| *table != Table::Conditions);
        for (_, id) in measured {
            assert!(page.lines.contains_key(&(Table::Conditions, id.clone())), "where and when was {id} measured?");
        }
        let text = std::fs::read_to_string(path()).expect("the page");
        assert!(
            page.text(&super::super::ids()) == text,
            "the page is stale: measure anything (`cargo xtask bench --only P10`)"
        );
    }
}
