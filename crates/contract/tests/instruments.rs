//! The specifications against each other, and the check and the canonical form that follow from
//! them.

use std::collections::BTreeSet;

use clrscope_contract::instruments::events::Group;
use clrscope_contract::instruments::spec::{ALL_MEMBERS, Limit, OptionSpec, Rule, Value, With};
use clrscope_contract::instruments::{
    ALL, CheckedInstrument, DEFAULT, Refusal, Spec, check, check_all, check_for_attach, check_for_notification_only,
    find, first_view,
};
use clrscope_contract::request::{InstrumentRequest, RecordedRequest, Request};
use proptest::collection::vec;
use proptest::prelude::*;

fn parse(text: &str) -> Result<CheckedInstrument, Refusal> {
    check(&InstrumentRequest::parse(text).expect("well formed"))
}

fn refusal(text: &str) -> Refusal {
    parse(text).expect_err("must be refused")
}

/// Ways to give an option that it takes, and no way at all.
fn ways(option: &OptionSpec) -> Vec<Option<String>> {
    let name = option.name;
    let words = |words: &[&str]| words.iter().map(|word| format!("{name}={word}")).collect::<Vec<_>>();
    let given = match option.value {
        Value::Switch { .. } => [vec![name.to_owned()], words(&["on", "off"])].concat(),
        Value::Extra { words: more } => [vec![name.to_owned()], words(&["on", "off"]), words(more)].concat(),
        Value::OneOf { words: all, .. } => words(all),
        Value::Size { least, .. } => vec![format!("{name}={least}"), format!("{name}=3GiB"), format!("{name}=9GiB")],
        Value::Count { least, most, .. } => vec![format!("{name}={least}"), format!("{name}={most}")],
        Value::Moments { .. } => {
            ["end", "command", "10s", "500ms+2s+end"].map(|value| format!("{name}={value}")).to_vec()
        }
        Value::Names { .. } => words(&["DoesNotReturn", "My.Exits+_Ends2+My.Exits"]),
        Value::Set { members, .. } => {
            let each = members.iter().map(|member| member.name.to_owned());
            let few = format!("{name}={}+{}", members[3].name, members[1].name);
            let bare = format!("{},{}", members[members.len() - 1].name, members[0].name);
            each.chain([few, bare, ALL_MEMBERS.to_owned(), format!("{name}={ALL_MEMBERS}")]).collect()
        }
    };
    given.into_iter().map(Some).chain([None]).collect()
}

/// Every combination of [`ways`] of the options.
fn combinations(spec: &Spec) -> Vec<String> {
    let mut all = vec![Vec::new()];
    for option in spec.options {
        let more = |begun: &Vec<String>| {
            let begun = begun.clone();
            ways(option).into_iter().map(move |way| begun.iter().cloned().chain(way).collect())
        };
        all = all.iter().flat_map(more).collect();
    }
    all.iter().map(|options: &Vec<String>| format!("{}:{}", spec.name, options.join(","))).collect()
}

/// Checks the canonical form of an accepted request: stable, and of equal meaning.
fn assert_canonical(text: &str, checked: &CheckedInstrument) {
    let canonical = checked.to_string();
    let again = parse(&canonical).unwrap_or_else(|refusal| panic!("{text} became {canonical}: {refusal}"));
    assert_eq!(&again, checked, "{text} became {canonical}");
    assert_eq!(again.to_string(), canonical, "{text}");
    // As the head of a report shows it.
    let shown = canonical.replace(',', ", ");
    assert_eq!(&parse(&shown).unwrap_or_else(|refusal| panic!("{shown}: {refusal}")), checked);
    let in_request = Request::parse(&canonical).expect("a request");
    assert_eq!(in_request.to_string(), canonical);
}

#[test]
fn the_canonical_form_of_every_combination_means_the_same() {
    for spec in ALL {
        let (all, mut accepted) = (combinations(spec), 0);
        // A specification with few options has fewer combinations than that, and no rule against
        // any.
        let least = all.len().min(51);
        for text in all {
            match parse(&text) {
                Ok(checked) => {
                    assert_canonical(&text, &checked);
                    accepted += 1;
                }
                Err(refusal) => {
                    // Each value alone is right; only rules can stand against them together.
                    assert!(refusal.why.contains("needs") || refusal.why.contains("takes either"), "{text}: {refusal}");
                    assert!(!spec.rules.is_empty(), "{text}: {refusal}");
                }
            }
        }
        assert!(accepted >= least, "{}: {accepted}", spec.name);
    }
}

/// Words that have to do with an option, right and wrong, and others.
fn word() -> impl Strategy<Value = String> {
    let of_options = ALL.iter().flat_map(|spec| spec.options).flat_map(ways).flatten();
    let bare = ALL.iter().flat_map(|spec| spec.words()).map(str::to_owned);
    let known: Vec<String> = of_options.chain(bare).collect();
    prop_oneof![4 => prop::sample::select(known), 1 => "[a-z]{1,8}(=[a-z0-9+%]{0,8})?"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_is_accepted_has_a_canonical_form(
        name in prop::sample::select(ALL.iter().map(|spec| spec.name).collect::<Vec<_>>()),
        words in vec(word(), 0..6),
    ) {
        let text = format!("{name}:{}", words.join(","));
        if let Ok(request) = InstrumentRequest::parse(&text) {
            match check(&request) {
                Ok(checked) => assert_canonical(&text, &checked),
                Err(refusal) => assert!(!refusal.why.is_empty() && !refusal.hint.is_empty(), "{text}"),
            }
        }
    }
}

#[test]
fn recordings_say_the_canonical_form() {
    for (given, canonical) in [
        ("calls", "calls:clock=sampled,noinline=off,native=off,helpers=off,trivial=on,max=1073741824"),
        (
            "calls:noinline,clock=tsc,native=on,trivial=off,max=64MiB",
            "calls:clock=tsc,noinline=on,native=on,helpers=off,trivial=off,max=67108864",
        ),
        ("calls:max=9GiB", "calls:clock=sampled,noinline=off,native=off,helpers=off,trivial=on,max=4294967296"),
        ("flow", "flow:last=1073741824"),
        ("flow:all", "flow:all"),
        ("flow:all=off,last=1MiB", "flow:last=1048576"),
        ("flow:args=types,all", "flow:all,args=types"),
        ("flow:depth=0,args", "flow:last=1073741824,args=values,depth=0"),
        ("flow:args=on", "flow:last=1073741824,args=values,depth=1"),
        ("flow:args=off", "flow:last=1073741824"),
        ("events", "events:groups=runtime+loads+jit+threads+suspend+gc+exceptions,allocations=off,max=1073741824"),
        ("events:gc,groups=jit+gc", "events:groups=jit+gc,allocations=off,max=1073741824"),
        ("events:all,allocations", "events:groups=all,allocations=on,max=1073741824"),
        ("exceptions", "exceptions:frames=64,stacks=frames,max=1073741824"),
        ("alloc", "alloc:frames=64,max=1073741824"),
        ("alloc:live,exact=on,frames=0", "alloc:exact,live,frames=0,max=1073741824"),
        ("requests", "requests:max=1073741824"),
        ("requests:max=1MiB,urls", "requests:urls=full,max=1048576"),
        ("probes", "probes"),
        ("probes:each", "probes:each,last=1073741824"),
        ("probes:args", "probes:args=values,depth=1,last=1073741824"),
        ("probes:args=types,each,last=2MiB", "probes:each,args=types,last=2097152"),
        ("exceptions:args,frames=9", "exceptions:args,frames=9,stacks=frames,max=1073741824"),
    ] {
        assert_eq!(parse(given).map(|checked| checked.to_string()), Ok(canonical.to_owned()), "{given}");
    }
}

#[test]
fn a_switch_is_taken_bare_and_with_on_and_off_everywhere() {
    let mut switches = 0;
    for spec in ALL {
        for option in spec.options {
            if !matches!(option.value, Value::Switch { .. } | Value::Extra { .. }) {
                continue;
            }
            switches += 1;
            let name = option.name;
            // The other option that the switch needs, if any.
            let beside = spec.rules.iter().find_map(|rule| match rule {
                Rule::Needs { option, word, .. } if *option == name => Some(format!(",{word}")),
                _ => None,
            });
            let is_on = |way: &str| {
                let text = format!("{}:{name}{way}{}", spec.name, beside.clone().unwrap_or_default());
                parse(&text).unwrap_or_else(|refusal| panic!("{text}: {refusal}")).is_on(name)
            };
            assert_eq!((is_on(""), is_on("=on"), is_on("=off")), (true, true, false), "{}:{name}", spec.name);
        }
    }
    assert_eq!(switches, 21);
}

#[test]
fn refusals_name_what_is_known() {
    assert!(refusal("nothing").hint.starts_with(
        "known instruments: calls, flow, events, exceptions, cpu, wall, gc, locks, awaits, requests, counters, memory, heap, alloc, coverage"
    ));
    assert!(refusal("calls:speed=9").hint.contains("clock, noinline, native, helpers, trivial, max"));
    assert_eq!(refusal("calls:clock=sun").hint, "write clock=sampled|tsc");
    assert_eq!(refusal("calls:clock").why, "option 'clock' of 'calls' needs a value");
    assert_eq!(refusal("calls:noinline=maybe").hint, "write noinline[=on|off]");
    assert_eq!(refusal("calls:native=maybe").why, "option 'native' of 'calls' does not take 'maybe'");
    let names = "write does-not-return=NAME+NAME with names of types, without brackets";
    for value in ["", "[DoesNotReturn]", "A+", "A..B", "2A", "A-B"] {
        assert_eq!(refusal(&format!("coverage:does-not-return={value}")).hint, names, "{value}");
    }
    assert_eq!(refusal("coverage:does-not-return").why, "option 'does-not-return' of 'coverage' needs a value");
    let added = parse("coverage:does-not-return=A+B,does-not-return=B+C").expect("names");
    assert_eq!(added.to_string(), "coverage:hits=on,does-not-return=A+B+C");
    let least = "write max=SIZE with at least 64KiB, for instance 512MiB";
    for text in ["calls:max", "calls:max=0", "calls:max=1", "events:max=63KiB", "exceptions:max=lots"] {
        assert_eq!(refusal(text).hint, least, "{text}");
    }
    assert!(refusal("flow:speed=9").hint.contains("its options: last, all, args, depth"));
    assert!(refusal("flow:last=1k").hint.contains("at least 1MiB"));
    assert_eq!(refusal("flow:last").why, "option 'last' of 'flow' needs a value");
    assert_eq!(refusal("flow:args=9").hint, "write args[=values|types|check]");
    for deep in ["flow:args,depth=9", "flow:args,depth=abc", "flow:args,depth=-1", "flow:args,depth"] {
        assert_eq!(refusal(deep).hint, "write depth=N with a number from 0 to 5", "{deep}");
    }
    assert!(refusal("exceptions:depth=9").hint.contains("its options: args, frames, stacks, max"));
    assert!(refusal("exceptions:frames=1000").hint.contains("0 to 256"));
    assert_eq!(refusal("exceptions:args=all").hint, "write args[=on|off]");
    assert_eq!(refusal("probes:last=2MiB").why, "option 'last' of 'probes' needs probes:each or probes:args");
    assert_eq!(refusal("probes:last=2MiB").hint, "write probes:each,last=SIZE");
    assert_eq!(refusal("probes:each,depth=2").hint, "write probes:args,depth=N");
    assert_eq!(refusal("exceptions:stacks=none").hint, "write stacks=frames|snapshot|check");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    assert_eq!(refusal("flow:all,last=2MiB").why, "instrument 'flow' takes either 'last' or 'all', and once");
    assert_eq!(refusal("flow:last=1MiB,last=2MiB").why, refusal("flow:all,all").why);
    assert_eq!(refusal("flow:depth=2").why, "option 'depth' of 'flow' needs flow:args");
    assert_eq!(refusal("flow:depth=2").hint, "write flow:args,depth=N");
    assert!(refusal("flow:args=types,depth=2").why.contains("needs flow:args"));
    assert_eq!(refusal("events:jit,allocations=on").why, "option 'allocations' of 'events' needs events:objects");
    assert_eq!(refusal("events:allocations").hint, "write events:objects,allocations=on");
}

#[test]
fn help_says_defaults_bounds_and_needs() {
    let lines = |spec: &Spec| spec.option_lines().collect::<Vec<_>>();
    let calls = lines(find("calls").expect("an instrument"));
    let line = |about: &str| ("max=SIZE".to_owned(), about.to_owned());
    assert_eq!(calls.last(), Some(&line("memory limit per process (default 1GiB, at least 64KiB, 4GiB at most)")));
    let about = |spec: &str, option: &str| {
        let lines = lines(find(spec).expect("an instrument"));
        lines.into_iter().find(|(spelled, _)| spelled.starts_with(option)).expect("an option").1
    };
    assert!(about("flow", "depth=N").ends_with(" (default 1, at most 5, needs args)"));
    assert!(
        about("flow", "args[=values|types|check]")
            .ends_with("or only their types; check is for tests and records no calls")
    );
    assert!(about("events", "allocations").ends_with(" (default off, needs objects)"));
    assert!(about("events", "groups=GROUP+GROUP").contains("(default runtime+loads"));
    assert_eq!(lines(find("events").expect("an instrument")).last().expect("a line").0, ALL_MEMBERS);
}

#[test]
fn every_group_can_be_named_alone() {
    for (name, group) in Group::ALL {
        let checked = parse(&format!("events:{name}")).expect("a group");
        assert_eq!(checked.members("groups"), [name]);
        assert_eq!((Group::parse(name), group.name()), (Some(group), name));
    }
    assert!(refusal("events:jitter").hint.contains("suspend, gc, objects"));
    assert!(refusal("events:groups=gc+sun").hint.contains("heap"));
    assert!(refusal("events:groups=").hint.contains("out of: runtime"));
    assert_eq!(parse("events:gc=on").expect("a switch").members("groups"), ["gc"]);
    assert_eq!(refusal("events:gc=maybe").hint, "write gc");
}

#[test]
fn what_is_misspelt_is_guessed() {
    assert_eq!(
        refusal("call").hint,
        "did you mean 'calls'? known instruments: calls, flow, events, exceptions, cpu, wall, gc, locks, awaits, requests, counters, memory, heap, alloc, coverage, \
         probes"
    );
    assert!(refusal("calls:clocks=tsc").hint.starts_with("did you mean 'clock'? its options: clock, noinline"));
    assert!(refusal("events:exceptoins").hint.starts_with("did you mean 'exceptions'?"));
}

#[test]
fn instruments_that_do_not_go_together_are_refused() {
    let why = |text: &str| check_all(&Request::parse(text).expect("a request")).map(|all| all.len()).map_err(|r| r.why);
    assert_eq!(why("calls;flow:args;events;exceptions;include=[A]*"), Ok(4));
    assert_eq!(why("calls;events;calls:clock=tsc"), Err("an instrument is named twice".to_owned()));
    assert!(why("exceptions:args").expect_err("nothing is named").contains("--include"));
    assert!(why("exceptions:args;flow;include=[A]*").expect_err("both want hooks").contains("hooks"));
    assert_eq!(why("flow;exceptions:args=off"), Ok(2));
    // `heap` ends the runtime's walk of the heap at its first object, and `events` counted that
    // one.
    assert!(why("heap;events:objects").expect_err("both want the walk").contains("events:objects"));
    assert!(why("events:groups=gc+heap;heap:at=2s").expect_err("both want the walk").contains("heap walk"));
    assert_eq!(why("heap;events:gc"), Ok(2));
    assert_eq!(why("probes;calls;probe=Shop.*"), Ok(2));
    assert!(why("probes").expect_err("no method is named").contains("none is"));
    assert!(why("calls;probe=Shop.*").expect_err("nobody probes").contains("'probes', which is not requested"));
    assert_eq!(why("probes;coverage;probe=Shop.*"), Ok(2));
}

#[test]
fn the_view_to_begin_with_is_that_of_the_first_instrument() {
    let view = |text: &str| first_view(RecordedRequest::from(text).instruments());
    assert_eq!(view("events:groups=gc,max=1;exceptions:stacks=on"), Some("events"));
    assert_eq!(view("exceptions:args"), Some("exceptions"));
    // The summary has nothing of `flow`, and said of such recordings that nothing was recorded.
    assert_eq!(view("flow:last=1"), Some("flow"));
    assert_eq!(view("events:groups=all;flow:last=1"), Some("events"));
    for with_functions in ["", "calls:clock=tsc", "flow:last=1;calls", "later:x=1;calls"] {
        assert_eq!(view(with_functions), None, "{with_functions}");
    }
}

#[test]
fn specifications_are_sound() {
    let names: BTreeSet<_> = ALL.iter().map(|spec| spec.name).collect();
    assert_eq!(names.len(), ALL.len(), "each name once");
    assert!(names.contains(DEFAULT.name));
    let default = check(&InstrumentRequest::named(DEFAULT.name)).expect("the instrument alone");
    assert_eq!(check_for_attach(&[default]), Ok(()), "it is the default of 'attach' as well");
    for spec in ALL {
        let place = spec.name;
        assert_eq!(find(place).map(|found| found.name), Some(place));
        let words: Vec<_> = spec.words().collect();
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len(), "{place}: each option and member once");
        assert!(words.iter().all(|word| InstrumentRequest::parse(&format!("x:{word}")).is_ok()), "{place}");
        assert!(!spec.views.is_empty() && !spec.about.is_empty(), "{place}");
        let has = |name: &str| spec.option(name).is_some();
        assert!(spec.conflicts.iter().filter_map(|conflict| conflict.option).all(has), "{place}");
        for conflict in spec.conflicts {
            assert!(!matches!(conflict.with, With::Instrument(other) if !names.contains(other)), "{place}");
            if let With::Member(other, option, word) = conflict.with {
                let option = find(other).and_then(|spec| spec.option(option)).expect("an option");
                assert!(
                    matches!(option.value, Value::Set { members, .. } if members.iter().any(|member| member.name == word)),
                    "{place}"
                );
            }
        }
        for rule in spec.rules {
            match rule {
                Rule::Either(options) => assert!(options.iter().all(|option| has(option)), "{place}"),
                Rule::Needs { option, other, .. } => assert!(has(option) && has(other), "{place}"),
                Rule::NeedsOneOf { option, others } => {
                    assert!(has(option) && others.iter().all(|other| has(other)), "{place}");
                }
            }
        }
        for option in spec.options {
            let place = format!("{place}:{}", option.name);
            match option.value {
                Value::OneOf { words, default } => assert!(words.contains(&default), "{place}"),
                Value::Size { least, most, default } => {
                    assert!(least <= default && most.is_none_or(|most| default <= most), "{place}");
                }
                Value::Count { least, most, default } => assert!(least <= default && default <= most, "{place}"),
                Value::Set { members, default } => {
                    let is_member = |name: &&str| members.iter().any(|member| member.name == *name);
                    assert!(default.iter().all(is_member) && !is_member(&ALL_MEMBERS), "{place}");
                }
                Value::Moments { default } => assert!(!default.is_empty(), "{place}"),
                Value::Switch { .. } | Value::Extra { .. } | Value::Names { .. } => {}
            }
        }
    }
}

#[test]
fn what_the_runtime_allows_at_its_start_only_is_not_attached() {
    let attached = |text: &str| {
        let request = Request::parse(text).expect("a request");
        check_for_attach(&request.instruments.iter().map(|one| check(one).expect("an instrument")).collect::<Vec<_>>())
    };
    for allowed in ["exceptions", "events", "exceptions:frames=3;events:gc,jit", "events:heap", "alloc:live", "probes"]
    {
        assert_eq!(attached(allowed), Ok(()), "{allowed}");
    }
    for refused in [
        "calls",
        "coverage",
        "flow:args",
        "exceptions;calls",
        "exceptions:args",
        "alloc:exact",
        "events:jit,transitions",
        "events:objects,allocations",
    ] {
        let refusal = attached(refused).expect_err(refused);
        assert!(refusal.hint.starts_with("start the program instead: clrscope run -i "), "{refusal}");
    }
    let refusal = attached("events:gc,transitions").expect_err("transitions");
    assert!(refusal.hint.contains("-i events:groups=transitions+gc,"), "{refusal}");
}

/// Each option and word that a limit names is one that the instrument has.
#[test]
fn what_is_limited_is_there() {
    type Check = fn(&[CheckedInstrument]) -> Result<(), Refusal>;
    type Of = fn(&Spec) -> Limit;
    let limits: [(Of, Check); 2] = [
        (|spec| spec.attach, check_for_attach),
        (|spec| spec.notification_only, |checked| check_for_notification_only(&Request::default(), checked, true)),
    ];
    for (spec, (limit, is_allowed)) in ALL.iter().flat_map(|spec| limits.map(|limit| (spec, limit))) {
        let Limit::Without(parts) = limit(spec) else { continue };
        for part in parts {
            let option = spec.option(part.option).expect("an option");
            let Some(word) = part.word else { continue };
            let way = format!("{}:{}={word}", spec.name, option.name);
            let checked = parse(&way).unwrap_or_else(|refusal| panic!("{way}: {refusal}"));
            assert!(is_allowed(&[checked]).is_err(), "{way}");
        }
    }
}

#[test]
fn what_needs_the_main_slot_is_refused_without_it() {
    let without = |text: &str| {
        let request = Request::parse(text).expect("a request");
        let checked = request.instruments.iter().map(|one| check(one).expect("an instrument")).collect::<Vec<_>>();
        check_for_notification_only(&request, &checked, false)
    };
    for allowed in [
        "cpu;wall;gc;exceptions;heap:at=2GiB",
        "heap;duration=5s",
        "alloc;locks;counters;memory",
        "events",
        "heap:at=command",
    ] {
        assert_eq!(without(allowed), Ok(()), "{allowed}");
    }
    for refused in ["cpu;calls", "heap:collect=off", "exceptions:args", "alloc:exact", "events:objects,allocations"] {
        let refusal = without(refused).expect_err(refused);
        assert!(refusal.hint.ends_with("counters, memory, heap, alloc"), "{refusal}");
    }
    assert!(without("heap").expect_err("at the end").hint.starts_with("take it earlier: heap:at=10s"));
}
