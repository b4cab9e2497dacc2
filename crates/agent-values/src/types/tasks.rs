//! Tasks, which are shown by state and result and not by their fields.

use clr_profiler::{ClassId, ClassInfo};

use super::{Names, Types};
use crate::kinds::{Class, Form, Shape, Task};

/// Most base classes that are searched for a task type.
const MOST_BASES: usize = 8;
const TASK: &str = "System.Threading.Tasks.Task";
/// Result type of tasks of methods without a result.
const NOTHING: &str = "System.Threading.Tasks.VoidTaskResult";

impl Types {
    /// If `about` is a task, shows it by state and result. Classes that the framework derives from
    /// tasks for its own use are shown under the name of the task.
    pub(super) fn as_task(&self, id: ClassId, about: &ClassInfo, shape: &mut Shape, names: &mut Names) {
        let Some((task, of_task)) = self.task_among_bases(id, about) else { return };
        let Some(status) = self.task_status() else { return };
        let Some((_, flags)) = names.field("m_stateFlags", shape) else { return };
        let has_none = of_task.type_arguments.iter().any(|argument| self.name_of(*argument) == NOTHING);
        let result = names.field("m_result", shape).filter(|_| !has_none);
        if self.is_core(about.module) {
            names.name = Some(if has_none { TASK.to_owned() } else { self.name_of(task) });
        }
        shape.form = Form::Task(Task { flags: flags.offset, status, result: result.as_ref().map(|(_, field)| *field) });
        names.become_task(result.map(|(ty, _)| ty));
    }

    /// Like [`as_task`](Self::as_task), for `ValueTask` and `ValueTask<T>`. Their fields stay,
    /// since they tell how the value is passed.
    pub(super) fn as_value_task(&self, shape: &mut Shape, names: &mut Names) {
        let Some(status) = self.task_status() else { return };
        let Some((_, object)) = names.field("_obj", shape) else { return };
        let result = names.field("_result", shape);
        let field = result.as_ref().map(|(_, field)| *field);
        shape.form = Form::ValueTask { object: object.offset, status, result: field };
        names.become_task(result.map(|(ty, _)| ty));
    }

    /// The class of a task that is only shown, with the type of its result.
    pub(super) fn shown_task(&self, name: String, result: Option<&str>) -> &'static Class {
        let mut names = Names::default();
        names.become_task(result.map(str::to_owned));
        self.declared_class(name, names)
    }

    /// The framework's task type among a class and its bases.
    fn task_among_bases(&self, id: ClassId, about: &ClassInfo) -> Option<(ClassId, ClassInfo)> {
        let mut at = (id, about.clone());
        for _ in 0..MOST_BASES {
            if self.is_core(at.1.module) && self.declared_name(&at.1)?.trim_end_matches("`1") == TASK {
                return Some(at);
            }
            let parent = at.1.parent?;
            at = (parent, self.info().class_info(parent).ok()?);
        }
        None
    }

    pub(super) fn task_status(&self) -> Option<&'static Class> {
        self.core_class("System.Threading.Tasks.TaskStatus")
    }
}
