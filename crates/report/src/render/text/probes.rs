//! A call of a probed method as text.

use clrscope_analysis::ProbeCall;
use clrscope_contract::request::split_marker;

use super::names::parameters;
use super::units::time;
use super::values::{arguments, results};
use super::{FAINT, WARNING, one_line, styled};

/// One call in a line: time, thread, arguments, results, duration, and how it ended.
pub(crate) fn call(call: &ProbeCall<'_>, several: bool) -> String {
    let process = if several { format!("process {} ", call.process.pid) } else { String::new() };
    let thread = call.thread.map_or_else(|| "?".to_owned(), |thread| thread.id.to_string());
    let seconds = call.time_ns / 1_000_000_000;
    let moment = format!("{seconds:>4}.{:09} s  {process}thread {thread:<3}", call.time_ns % 1_000_000_000);
    let (signature, marker) = split_marker(&call.method.signature);
    let code = marker.map_or_else(String::new, |marker| format!(" ({marker})"));
    let given = call.arguments.as_ref().map_or_else(|| parameters(signature).to_owned(), arguments) + &code;
    let left = call.results.as_ref().map(results).unwrap_or_default();
    let duration = call.duration_ns.map_or_else(|| "no end".to_owned(), time);
    let failed = match call.failed {
        Some(true) => format!("  {}", styled(WARNING, "by an exception")),
        _ => String::new(),
    };
    let (name, values) = (one_line(&call.method.name), one_line(given + &left));
    format!("{} {name}{values}  {}{failed}\n", styled(FAINT, &moment), styled(FAINT, &duration))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{ProbedMethod, Process};

    use super::*;

    #[test]
    fn calls_say_which_overload_and_which_code_of_a_method_they_are_of() {
        let process = Process::default();
        let signature = "Shop.Cart.PayAsync(int) (async lambda, Cart.cs:17)";
        let method =
            ProbedMethod { name: "Shop.Cart::PayAsync".into(), signature: signature.into(), ..ProbedMethod::default() };
        let one = ProbeCall {
            process: &process,
            method: &method,
            module: "Shop",
            thread: None,
            time_ns: 1_500_000_000,
            duration_ns: Some(7),
            failed: Some(false),
            arguments: None,
            results: None,
        };
        let text = anstream::adapter::strip_str(&call(&one, false)).to_string();
        assert_eq!(text, "   1.500000000 s  thread ?   Shop.Cart::PayAsync(int) (async lambda, Cart.cs:17)  7 ns\n");
    }
}
