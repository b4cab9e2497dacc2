//! Methods of .NET's core library that run asynchronous code. The agent searches stacks for them,
//! and the readers of recordings search paths for them.

/// Name of the library that declares these methods.
pub const CORE_LIBRARY: &str = "System.Private.CoreLib";

/// Methods that resume asynchronous code after an await: the type, and a prefix of the method's
/// name (.NET 8, 9 and 10). The methods of the boxes may be inlined into the others.
const RESUMPTIONS: [(&str, &str); 6] = [
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder+AsyncStateMachineBox", "MoveNext"),
    ("System.Runtime.CompilerServices.AsyncTaskMethodBuilder+AsyncStateMachineBox", "ExecuteFromThreadPool"),
    ("System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder+StateMachineBox", "MoveNext"),
    // The following methods run a continuation, which is a box or a delegate.
    ("System.Threading.Tasks.AwaitTaskContinuation", "RunOrScheduleAction"),
    ("System.Threading.Tasks.AwaitTaskContinuation", "RunCallback"),
    ("System.Threading.Tasks.ContinueWithTaskContinuation", "Run"),
];

/// Whether a method of the core library resumes asynchronous code after an await; `name` is
/// `Type::Method`.
#[must_use]
pub fn resumes(name: &str) -> bool {
    let is_it =
        |(of, method): (&str, &str)| RESUMPTIONS.iter().any(|(class, named)| of == *class && method.starts_with(named));
    name.split_once("::").is_some_and(is_it)
}

/// Flag in the state field of a waiting async method: the field contains the number of the wait in
/// addition to the number of the await. The instrument `awaits` changes the method so that it
/// stores both numbers, and so that its own code removes the number of the wait again. Other code
/// that reads the field must remove it with [`await_number`].
///
/// Methods number their awaits from 0, so they never store a number with this bit themselves.
pub const NUMBERED_WAIT: u32 = 1 << 30;
/// Number of bits that hold the number of the await; the number of the wait is in the bits above.
pub const AWAIT_BITS: u32 = 8;

/// The number of the await at which an async method waits, from the value `kept` of its state
/// field. Negative states, here as unsigned numbers, belong to methods that run or have ended.
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
