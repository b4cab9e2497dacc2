//! Async methods and iterators. The compiler turns each into a type: the fields hold the arguments,
//! and the method `MoveNext` holds the code. `MoveNext` is shown as the method in the source.

use clr_profiler::metadata::{MetadataImport, MethodDef};
use clr_profiler::{ClassId, Token};

use super::completion::AwaitedTask;
use super::kinds::Kind;
use super::source_names;
use super::types::{Member, Types};

/// The type that the compiler made of a method.
pub(super) struct StateMachine {
    /// The arguments that the code still needs, each with the place of its field. `this` comes
    /// first.
    pub(super) arguments: Vec<Member>,
    /// The task that the method returned to its caller, where the builder refers to the task.
    pub(super) task: Option<Member>,
    /// The task that the code completes.
    pub(super) awaited: Option<AwaitedTask>,
    /// Name of the method in the source, where the type says it.
    pub(super) source: String,
}

impl StateMachine {
    /// Whether a method is the code of a state machine.
    pub(super) fn is_code(metadata: &MetadataImport, method: &MethodDef) -> bool {
        method.name == "MoveNext" && metadata.type_def(method.class).is_ok_and(|declared| is_machine(&declared.name))
    }

    /// Returns the state machine that `method` is the code of; `None` for other methods. `class` is
    /// the type of the state machine.
    pub(super) fn from_method(
        types: &Types,
        class: ClassId,
        metadata: &MetadataImport,
        method: &MethodDef,
    ) -> Option<Self> {
        if !Self::is_code(metadata, method) {
            return None;
        }
        let declared = metadata.type_def(method.class).ok()?.name;
        let members = types.members(class)?;
        let builder = members.iter().find(|member| matches!(&*member.name, "<>t__builder" | "$Builder"));
        let task = builder.and_then(|builder| task_of(types, builder));
        let awaited = builder.and_then(|builder| types.awaited(&builder.type_name, builder.offset));
        let mut arguments: Vec<Member> = members.into_iter().filter_map(argument).collect();
        let order = source_order(metadata, method.class, &declared, &arguments);
        arguments.sort_by_key(|argument| match &*argument.name {
            "this" => 0,
            name => 1 + order.iter().position(|other| other == name).unwrap_or(order.len()),
        });
        let source = source_names::method(&declared).to_owned();
        Some(Self { arguments, task, awaited, source })
    }
}

/// `<Pay>d__5` in C#, `VB$StateMachine_5_Pay` in Visual Basic.
fn is_machine(name: &str) -> bool {
    name.starts_with('<') && name.contains(">d") || name.starts_with("VB$StateMachine_")
}

/// The names of the parameters in source order, from a method that has all of them.
fn source_order(metadata: &MetadataImport, machine: Token, name: &str, arguments: &[Member]) -> Vec<String> {
    let source = name.strip_prefix('<').and_then(|rest| rest.split_once(">d")).map(|(source, _)| source);
    let around = metadata.enclosing_type(machine).ok().flatten();
    let methods = source.zip(around).and_then(|(source, around)| metadata.methods_named(around, source).ok());
    let parameters = methods.unwrap_or_default().into_iter().filter_map(|method| {
        let mut all: Vec<_> =
            metadata.params(method).ok()?.into_iter().filter_map(|token| metadata.param(token).ok()).collect();
        all.sort_by_key(|parameter| parameter.sequence);
        Some(all.into_iter().map(|parameter| parameter.name).collect::<Vec<_>>())
    });
    let has_all = |names: &Vec<String>| arguments.iter().all(|a| a.name == "this" || names.contains(&a.name));
    parameters.into_iter().find(has_all).unwrap_or_default()
}

/// Fields with names from the source are arguments. Locals and the compiler's own fields have other
/// names.
fn argument(member: Member) -> Option<Member> {
    let name = match &*member.name {
        "<>4__this" | "$VB$Me" => "this",
        name if name.starts_with(['<', '$']) => name.strip_prefix("$VB$Local_")?,
        name => name,
    };
    Some(Member { name: name.to_owned(), ..member })
}

/// Field in which the builder of an `async` method that returns a task keeps the task. Builders of
/// value tasks don't always have one.
fn task_of(types: &Types, builder: &Member) -> Option<Member> {
    let Kind::Struct(class) = builder.kind else { return None };
    // SAFETY: the type system has met the class, and forgets it when its module goes.
    let id = unsafe { ClassId::from_raw(class.id) };
    if !types.name_of(id).starts_with("System.Runtime.CompilerServices.AsyncTaskMethodBuilder") {
        return None;
    }
    let members = types.members(id)?;
    let task = members.into_iter().find_map(|member| match member.kind {
        // The builder of tasks without a result contains a builder of tasks with a result.
        Kind::Reference(_) if member.name == "m_task" => Some(member),
        _ => None,
    })?;
    let type_name = if task.type_name.contains("VoidTaskResult") {
        "System.Threading.Tasks.Task".to_owned()
    } else {
        task.type_name
    };
    Some(Member { type_name, offset: builder.offset + task.offset, ..task })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Option<String> {
        let member = Member {
            name: name.to_owned(),
            type_name: "int".to_owned(),
            offset: 8,
            kind: Kind::Int(4),
            is_hidden: false,
        };
        argument(member).map(|argument| argument.name)
    }

    #[test]
    fn arguments_are_told_from_what_the_compiler_needs() {
        assert_eq!(named("amount").as_deref(), Some("amount"));
        assert_eq!(named("<>4__this").as_deref(), Some("this"));
        assert_eq!(named("$VB$Local_amount").as_deref(), Some("amount"));
        for other in ["<>1__state", "<>t__builder", "<>u__1", "<sum>5__2", "<>3__count", "$State"] {
            assert_eq!(named(other), None, "{other}");
        }
    }

    #[test]
    fn machines_are_known_by_their_names() {
        assert!(
            is_machine("<PayAsync>d__5") && is_machine("VB$StateMachine_5_Pay") && is_machine("<<Main>g__Local|0_0>d")
        );
        assert!(!is_machine("<>c__DisplayClass3_0") && !is_machine("Enumerator"));
    }
}
