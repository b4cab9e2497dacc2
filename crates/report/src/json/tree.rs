//! Trees are written node by node: a large one need not be in memory twice, a deep one needs no stack.

use std::io::{self, Write};

use clrscope_analysis::TreeNode;
use serde_json::{Value, json};

use super::rows::{add_times, function, thread_identity};
use super::{Object, schema};

/// One node without its children.
pub fn node(node: &TreeNode<'_>) -> Object {
    let mut all = function(&node.function);
    add_times(&mut all, &node.times);
    if node.by_tail_call {
        all.insert("tail_call".to_owned(), json!(true));
    }
    if let Some(thread) = node.thread {
        all.insert("thread".to_owned(), json!(thread_identity(thread)));
    }
    all
}

/// Writes the document of the view `tree` from its nodes in preorder.
pub struct TreeWriter<'o> {
    out: &'o mut dyn Write,
    /// The number of nodes whose array of children is open.
    open: u32,
}

impl<'o> TreeWriter<'o> {
    /// Begins the document.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin(out: &'o mut dyn Write, recording: Object) -> io::Result<Self> {
        write!(out, "{{\"schema\":{},\"recording\":", json!(schema("tree")))?;
        serde_json::to_writer(&mut *out, &Value::Object(recording))?;
        write!(out, ",\"roots\":[")?;
        Ok(Self { out, open: 0 })
    }

    /// Adds the next node.
    ///
    /// # Errors
    /// Those of writing.
    pub fn node(&mut self, next: &TreeNode<'_>) -> io::Result<()> {
        self.close_down_to(next.depth)?;
        // A first child follows the bracket of its parent, any other a sibling.
        if next.depth < self.open {
            write!(self.out, ",")?;
        }
        write_open(self.out, next)?;
        self.open = next.depth.min(self.open) + 1;
        Ok(())
    }

    /// Ends the document.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end(mut self) -> io::Result<()> {
        self.close_down_to(0)?;
        writeln!(self.out, "]}}")
    }

    fn close_down_to(&mut self, depth: u32) -> io::Result<()> {
        (depth..self.open).try_for_each(|_| write!(self.out, "]}}"))
    }
}

/// A node up to and with the bracket that opens its children.
fn write_open(out: &mut dyn Write, next: &TreeNode<'_>) -> io::Result<()> {
    let text = serde_json::to_string(&Value::Object(node(next)))?;
    write!(out, "\n{},\"children\":[", &text[..text.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clrscope_analysis::{Amount, FunctionRef, Times};
    use clrscope_recording::model::{Function, Module};

    fn written<'a>(nodes: impl Iterator<Item = TreeNode<'a>>) -> Vec<u8> {
        let mut text = Vec::new();
        let mut writer = TreeWriter::begin(&mut text, Object::new()).expect("memory takes all");
        nodes.for_each(|node| writer.node(&node).expect("memory takes all"));
        writer.end().expect("memory takes all");
        text
    }

    fn document(depths: &[u32]) -> Value {
        let (function, module) = (Function { name: "N".to_owned(), ..Function::default() }, Module::default());
        let nodes = depths.iter().map(|&depth| TreeNode {
            depth,
            children: 0,
            function: FunctionRef { pid: 1, function: &function, module: &module },
            thread: None,
            times: Times { calls: u64::from(depth), ..Times::default() },
            amount: Amount::default(),
            by_tail_call: false,
        });
        serde_json::from_slice(&written(nodes)).expect("well-formed JSON")
    }

    /// The depths as the document nests them.
    fn depths(nodes: &Value) -> Vec<u64> {
        let mut all = Vec::new();
        for node in nodes.as_array().expect("an array") {
            all.push(node["calls"].as_u64().expect("calls"));
            all.extend(depths(&node["children"]));
        }
        all
    }

    #[test]
    fn nesting_follows_the_depths() {
        for case in [&[][..], &[0], &[0, 0], &[0, 1, 2, 1, 0, 1], &[0, 1, 2, 3, 0]] {
            let document = document(case);
            let expected: Vec<u64> = case.iter().map(|&d| u64::from(d)).collect();
            assert_eq!(depths(&document["roots"]), expected);
        }
        assert_eq!(document(&[0, 1, 1])["roots"][0]["children"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_deep_path_needs_no_stack() {
        let (function, module) = (Function::default(), Module::default());
        let nodes = (0..200_000).map(|depth| TreeNode {
            depth,
            children: 1,
            function: FunctionRef { pid: 1, function: &function, module: &module },
            thread: None,
            times: Times::default(),
            amount: Amount::default(),
            by_tail_call: false,
        });
        let text = written(nodes);
        let brackets = |b: u8| text.iter().filter(|&&c| c == b).count();
        assert_eq!(brackets(b'{'), brackets(b'}'));
        assert_eq!(brackets(b'['), brackets(b']'));
    }
}
