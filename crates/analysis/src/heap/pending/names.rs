//! Names of async methods, derived from the types of their state machines, and names of the
//! operations that they wait for.

/// Name of the method whose box has this type, as `Namespace.Type::Method`; `None` for types that
/// are not boxes.
pub(super) fn method_of_box(type_name: &str) -> Option<String> {
    let machine = type_name.split_once("StateMachineBox<")?.1.strip_suffix('>')?;
    Some(method_of_machine(machine))
}

/// Name of the method for which the compiler generated a type: `Shop.Cart::Pay` for
/// `Shop.Cart.<Pay>d__3`.
fn method_of_machine(machine: &str) -> String {
    let Some((before, method)) = split(machine) else { return machine.to_owned() };
    let closure = before.find(".<>c").or_else(|| before.starts_with("<>c").then_some(0));
    let of = closure.map_or(before, |at| &before[..at]).trim_end_matches('.');
    let of = if of.is_empty() { String::new() } else { format!("{of}::") };
    match nested(method) {
        Some((outer, rest)) if rest.starts_with("b__") => format!("{of}{outer} (lambda)"),
        Some((outer, rest)) => {
            let name = rest.strip_prefix("g__").and_then(|rest| rest.split('|').next()).unwrap_or(rest);
            format!("{of}{outer} (local function {name})")
        }
        None => format!("{of}{method}"),
    }
}

/// The part before the last `<Method>d`, and the method.
fn split(machine: &str) -> Option<(&str, &str)> {
    let end = machine.rfind(">d")?;
    let mut depth = 1;
    let start = machine[..end].char_indices().rev().find_map(|(at, found)| {
        depth += match found {
            '>' => 1,
            '<' => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })?;
    Some((machine[..start].trim_end_matches('.'), &machine[start + 1..end]))
}

/// Splits the name of a lambda or local function, such as `<Main>b__0_1`, into the enclosing method
/// and the compiler's suffix.
fn nested(method: &str) -> Option<(&str, &str)> {
    let within = method.strip_prefix('<')?;
    let end = within.find(">b__").or_else(|| within.rfind(">g__"))?;
    Some((&within[..end], &within[end + 1..]))
}

/// Name of the awaited operation whose source has this type.
pub(super) fn source_in_words(type_name: &str, is_of_completion_source: bool) -> &str {
    const KNOWN: [(&str, &str); 15] = [
        ("System.Threading.Tasks.Task.DelayPromise", "Task.Delay"),
        ("System.Threading.Tasks.Task.CancellationPromise", "Task.WaitAsync"),
        ("System.Threading.Tasks.Task.WhenAll", "Task.WhenAll"),
        ("System.Threading.Tasks.Task.TwoTaskWhenAny", "Task.WhenAny"),
        ("System.Threading.Tasks.TaskFactory.CompleteOnInvoke", "Task.WhenAny"),
        ("System.Threading.SemaphoreSlim.TaskNode", "SemaphoreSlim.WaitAsync"),
        ("System.Threading.PeriodicTimer", "PeriodicTimer"),
        ("System.Threading.Channels.", "a channel"),
        ("System.Net.Sockets.Socket.AwaitableSocketAsyncEventArgs", "a socket"),
        ("System.Net.Sockets.", "a socket"),
        ("Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets.", "a socket"),
        ("System.Net.Http.", "an HTTP request"),
        ("System.Net.Security.", "TLS"),
        ("System.IO.Pipelines.", "a pipe"),
        ("System.Threading.AsyncOperation", "a channel"),
    ];
    if is_of_completion_source {
        return "a TaskCompletionSource";
    }
    if let Some((_, words)) = KNOWN.iter().find(|(beginning, _)| type_name.starts_with(beginning)) {
        return words;
    }
    let is_task = type_name == "System.Threading.Tasks.Task" || type_name.starts_with("System.Threading.Tasks.Task<");
    if is_task { "a task" } else { type_name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_by_the_types_that_the_compiler_made_of_them() {
        let boxed = |machine: &str| {
            let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
            method_of_box(&format!("{builder}.AsyncStateMachineBox<{machine}>")).expect("a box")
        };
        assert_eq!(boxed("Shop.Cart.<Pay>d__3"), "Shop.Cart::Pay");
        assert_eq!(boxed("Shop.Cart<T>.<Pay>d__3<int>"), "Shop.Cart<T>::Pay");
        assert_eq!(boxed("Program.<<Main>$>d__0"), "Program::<Main>$");
        assert_eq!(boxed("App.Program.<>c.<<Main>b__0_1>d"), "App.Program::Main (lambda)");
        assert_eq!(boxed("App.Program.<>c__DisplayClass2_0.<<Run>b__1>d"), "App.Program::Run (lambda)");
        assert_eq!(boxed("Program.<<<Main>$>g__Fetch|0_0>d"), "Program::<Main>$ (local function Fetch)");
        assert_eq!(boxed("Hand.Made"), "Hand.Made");
        assert_eq!(method_of_box("System.Threading.Tasks.Task<int>"), None);
    }

    #[test]
    fn what_is_waited_for_is_said_in_words() {
        assert_eq!(source_in_words("System.Threading.Tasks.Task.DelayPromise", false), "Task.Delay");
        assert_eq!(source_in_words("System.Threading.Tasks.Task<int>", true), "a TaskCompletionSource");
        assert_eq!(source_in_words("System.Threading.Tasks.Task<int>", false), "a task");
        assert_eq!(source_in_words("App.OwnPromise", false), "App.OwnPromise");
    }
}
