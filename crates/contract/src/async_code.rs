//! Methods of the framework that run asynchronous code, which the agent looks for on stacks and the
//! readers of recordings on paths.

/// Name of the library that declares them.
pub const CORE_LIBRARY: &str = "System.Private.CoreLib";

/// Types, each with the beginning of the names of their methods that go on with what has awaited
/// something (.NET 8, 9 and 10). The method of a box may be inlined into the others.
const RESUMPTIONS: [(&str, &str); 6] = [
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder+AsyncStateMachineBox", "MoveNext"),
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder+AsyncStateMachineBox", "ExecuteFromThreadPool"),
    ("System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder+StateMachineBox", "MoveNext"),
    // They run a continuation that is a box or a delegate.
    ("System.Threading.Tasks.AwaitTaskContinuation", "RunOrScheduleAction"),
    ("System.Threading.Tasks.AwaitTaskContinuation", "RunCallback"),
    ("System.Threading.Tasks.ContinueWithTaskContinuation", "Run"),
];

/// Whether a method of the core library goes on with what has awaited something; `name` is
/// `Type::Method`.
#[must_use]
pub fn resumes(name: &str) -> bool {
    let is_it =
        |(of, method): (&str, &str)| RESUMPTIONS.iter().any(|(class, named)| of == *class && method.starts_with(named));
    name.split_once("::").is_some_and(is_it)
}

/// The number that an async method keeps while it waits, with the number of the wait in it.
/// `awaits` has the method store it in place of the number of its await alone, and the method's own
/// code takes the wait out again. Any other code that reads the field does the same with
/// [`await_number`].
///
/// Methods number their awaits from 0, so a number with this bit is no method's own.
pub const NUMBERED_WAIT: u32 = 1 << 30;
/// Bits of the number of the await, below that of the wait.
pub const AWAIT_BITS: u32 = 8;

/// The number of the await at which an async method waits, by what it keeps; negative ones, as
/// numbers without a sign, are of methods that run or have ended.
#[must_use]
pub const fn await_number(kept: u32) -> u32 {
    if kept & (1 << 31) == 0 && kept & NUMBERED_WAIT != 0 { kept & ((1 << AWAIT_BITS) - 1) } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_waits_are_taken_out() {
        assert_eq!(await_number(7), 7);
        assert_eq!(await_number(NUMBERED_WAIT | 0x1234 << AWAIT_BITS | 7), 7);
        assert_eq!([u32::MAX, u32::MAX - 1].map(await_number), [u32::MAX, u32::MAX - 1]);
    }

    #[test]
    fn resumptions_are_known_by_their_names() {
        let builders = "System.Runtime.CompilerServices";
        assert!(resumes(&format!("{builders}.AsyncTaskMethodBuilder+AsyncStateMachineBox::MoveNext")));
        assert!(resumes("System.Threading.Tasks.AwaitTaskContinuation::RunCallback"));
        assert!(!resumes("System.Threading.Tasks.Task::RunContinuations"));
        assert!(!resumes("App.AsyncStateMachineBox::MoveNext"));
    }
}
