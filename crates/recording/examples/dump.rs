//! Prints the contents of a recording, for debugging the writer: `cargo run -p clrscope-recording
//! --example dump -- REC`.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    let path = std::env::args_os().nth(1).unwrap_or_default();
    let recording = match clrscope_recording::open(std::path::Path::new(&path)) {
        Ok(recording) => recording,
        Err(error) => return println!("{error}"),
    };
    println!("{:?}\n{:?}", recording.run, recording.problems);
    for process in &recording.processes {
        println!(
            "{} {:?} {} complete={} {:?}",
            process.pid, process.command, process.runtime, process.complete, process.losses
        );
        println!("{:?} {:?}", process.calls, process.remarks);
        for thread in &process.threads {
            let tree = thread.tree.load();
            let calls: u64 = (0..tree.len() as u32).map(|n| tree.calls(n)).sum();
            let time: u64 = tree.values().iter().map(|t| t.1.metric).sum();
            println!(
                "thread {} {} {:?} {}: {} nodes {calls} calls {time} ns",
                thread.id,
                thread.os_id,
                thread.role,
                thread.name,
                tree.len()
            );
            let mut depth = vec![0_u32; tree.len()];
            for node in 0..tree.len() as u32 {
                let parent = tree.parents()[node as usize];
                depth[node as usize] = if node == 0 { 0 } else { depth[parent as usize] + 1 };
                let function = tree.functions()[node as usize] as usize;
                let name = process.functions.get(function).map_or("?", |f| f.signature.as_str());
                if std::env::args().nth(2).is_some() {
                    println!(
                        "{:w$}{name} {} {:?}",
                        "",
                        tree.calls(node),
                        tree.values_of(node).metric,
                        w = depth[node as usize] as usize
                    );
                }
            }
        }
    }
}
