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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumptions_are_known_by_their_names() {
        let builders = "System.Runtime.CompilerServices";
        assert!(resumes(&format!("{builders}.AsyncTaskMethodBuilder+AsyncStateMachineBox::MoveNext")));
        assert!(resumes("System.Threading.Tasks.AwaitTaskContinuation::RunCallback"));
        assert!(!resumes("System.Threading.Tasks.Task::RunContinuations"));
        assert!(!resumes("App.AsyncStateMachineBox::MoveNext"));
    }
}
