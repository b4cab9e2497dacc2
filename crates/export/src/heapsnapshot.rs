//! `heapsnapshot`: a snapshot of the heap in V8's format, which browsers' developer tools and
//! Node's libraries read.
//!
//! Node 0 is the root. Its edges are named after the GC roots and lead to the objects that the
//! roots hold. Every other node is an object, named after its type. The names of types, fields and
//! roots are in one list that has each string once. Objects are streamed: only these strings are
//! kept in memory.

use std::collections::HashMap;
use std::io::Write;

use clrscope_analysis::{HeapContents, HeapPathPlace, heap_contents};
use clrscope_recording::model::Recording;

use crate::json::quoted;
use crate::refusals::refuse_all_but;
use crate::{ExportError, ExportOptions, Exporter};

/// The format `heapsnapshot`; its module describes the output.
pub(crate) struct HeapSnapshot;

/// Fields of a node: type, name, id, size, number of edges, trace, detachedness.
const NODE_FIELDS: u64 = 7;
/// Numbers of the types of nodes and edges, in the header's lists.
const OBJECT: u32 = 3;
const SYNTHETIC: u32 = 9;
const ELEMENT: u32 = 1;
const PROPERTY: u32 = 2;
const INTERNAL: u32 = 3;
const SHORTCUT: u32 = 5;

/// The header without the numbers of nodes and edges.
const META: &str = r#"{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"trace_node_fields":["id","function_info_index","count","size","children"],"sample_fields":["timestamp_us","last_assigned_id"],"location_fields":["object_index","script_id","line","column"]}"#;

impl Exporter for HeapSnapshot {
    fn name(&self) -> &'static str {
        "heapsnapshot"
    }

    fn description(&self) -> &'static str {
        "a snapshot of the heap (-i heap), for the memory panel of browsers' developer tools"
    }

    fn extension(&self) -> &'static str {
        "heapsnapshot"
    }

    fn shows_heap(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        refuse_all_but(
            &["--pid", "--process", "--snapshot"],
            options,
            self.name(),
            "it has every object of a snapshot",
        )?;
        let Some(heap) = heap_contents(recording, &options.heap_query(), "heapsnapshot")? else {
            return Err(ExportError::Empty("the snapshot can't be read"));
        };
        let mut strings = Strings::new(&heap);
        let roots = heap.roots().count() as u64;
        let edges = (0..heap.len()).map(|object| u64::from(heap.references(object))).sum::<u64>() + roots;
        write!(out, "{{\"snapshot\":{{\"meta\":{META},\"node_count\":{},", u64::from(heap.len()) + 1)?;
        writeln!(out, "\"edge_count\":{edges},\"trace_function_count\":0,\"root_index\":0}},")?;
        nodes(&heap, &mut strings, roots, out)?;
        write_edges(&heap, &mut strings, out)?;
        writeln!(out, "\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],")?;
        strings.write(out)?;
        writeln!(out, "}}")?;
        Ok(())
    }
}

fn nodes(heap: &HeapContents<'_>, strings: &mut Strings, roots: u64, out: &mut dyn Write) -> Result<(), ExportError> {
    // Ids of objects are odd numbers; the root has the first.
    writeln!(out, "\"nodes\":[{SYNTHETIC},{},1,0,{roots},0,0", strings.number(""))?;
    for object in 0..heap.len() {
        let (name, id) = (strings.of_type(heap.type_of(object)), 2 * u64::from(object) + 3);
        let (bytes, edges) = (heap.bytes(object), heap.references(object));
        writeln!(out, ",{OBJECT},{name},{id},{bytes},{edges},0,0")?;
    }
    writeln!(out, "],")?;
    Ok(())
}

/// Writes the edges of the root, and then those of each object.
fn write_edges(heap: &HeapContents<'_>, strings: &mut Strings, out: &mut dyn Write) -> Result<(), ExportError> {
    let mut separator = "";
    write!(out, "\"edges\":[")?;
    for (root, object) in heap.roots() {
        writeln!(out, "{separator}{SHORTCUT},{},{}", strings.number(&root.label()), node(object))?;
        separator = ",";
    }
    for object in 0..heap.len() {
        for (place, target) in heap.references_of(object) {
            let (kind, name) = match &place {
                HeapPathPlace::Index(at) => (ELEMENT, *at),
                HeapPathPlace::Field(name) => (PROPERTY, strings.number(name)),
                HeapPathPlace::FieldOfElement(_, name) => (PROPERTY, strings.element_field(name)),
                HeapPathPlace::Dependent => (INTERNAL, strings.number("(value of a weak table)")),
                HeapPathPlace::Loader => (INTERNAL, strings.number("(load context)")),
                _ => (INTERNAL, strings.number("(unknown)")),
            };
            writeln!(out, "{separator}{kind},{name},{}", node(target))?;
            separator = ",";
        }
    }
    writeln!(out, "],")?;
    Ok(())
}

/// Index of an object's node in the list of nodes.
fn node(object: u32) -> u64 {
    (u64::from(object) + 1) * NODE_FIELDS
}

/// Strings, without duplicates. Types have the first numbers.
struct Strings {
    all: Vec<String>,
    numbers: HashMap<String, u64>,
    /// Number of the name of each type.
    types: Vec<u64>,
}

impl Strings {
    fn new(heap: &HeapContents<'_>) -> Self {
        let mut strings = Self { all: Vec::new(), numbers: HashMap::new(), types: Vec::new() };
        let types = (0..heap.types()).map(|of| strings.number(&heap.type_name(of))).collect();
        strings.types = types;
        strings
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn of_type(&self, of: u32) -> u64 {
        self.types[of as usize]
    }

    /// A field of any array element: with element numbers, each element would add a string.
    fn element_field(&mut self, name: &str) -> u64 {
        self.number(&format!("[].{name}"))
    }

    fn write(&self, out: &mut dyn Write) -> Result<(), ExportError> {
        write!(out, "\"strings\":[")?;
        for (at, text) in self.all.iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            writeln!(out, "{separator}{}", quoted(text))?;
        }
        write!(out, "]")?;
        Ok(())
    }
}
