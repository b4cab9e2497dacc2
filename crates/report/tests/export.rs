//! The export format `csv`, compared with what was written by hand.

use clrscope_analysis::Query;
use clrscope_export::ExportOptions;
use clrscope_recording::model::Recording;
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_report::exporters;

fn csv(recording: &Recording, query: Query) -> String {
    let mut out = Vec::new();
    let format = exporters().find(|format| format.name() == "csv").expect("the format");
    format.write(recording, &ExportOptions { query, ..ExportOptions::default() }, &mut out).expect("written");
    String::from_utf8(out).expect("UTF-8")
}

#[test]
fn csv_has_the_rows_of_functions() {
    let mut r = recording("thread 1 \"main\"\n  Main 1 10 9\n    Pay 2 5\n");
    r.processes[0].functions[2].signature = "Pay(int, string)".into();
    let head = "pid,name,signature,module,token,kind,calls,inclusive_ns,exclusive_ns,callee_ns,suspended_ns,\
                profiler_ns,profiler_low_ns,profiler_high_ns,inclusive_cpu_ns,exclusive_cpu_ns,\
                exclusive_low_ns,exclusive_high_ns,exclusive_cpu_low_ns,exclusive_cpu_high_ns,max_recursion,threads";
    let expected = format!(
        "{head},inlined,starts,resumptions,tail_recursive\n7,Main,Main(),Shop,100663297,managed,1,15,10,5,0,0,0,0,9,9,0,3256461,0,3256129,1,1,,,,\n\
         7,Pay,\"Pay(int, string)\",Shop,100663298,managed,2,5,5,0,0,0,0,0,0,0,0,3254566,0,3250000,1,1,,,,\n"
    );
    assert_eq!(csv(&r, Query::default()), expected);
    r.processes[0].calls.as_mut().expect("calls").cpu_measured = false;
    let apart = csv(&r, Query { per_thread: true, limit: Some(1), ..Query::default() });
    let expected = format!(
        "{head},thread_id,thread_os_id,thread_name,thread_role,inlined,starts,resumptions,tail_recursive\n\
         7,Main,Main(),Shop,100663297,managed,1,15,10,5,0,0,0,0,,,0,3256461,,,1,1,1,1001,\"\"\"main\"\"\",main,,,,\n"
    );
    assert_eq!(apart, expected);
}

#[test]
fn every_format_has_a_name_of_its_own() {
    let names: Vec<_> = exporters().map(|format| format.name()).collect();
    assert_eq!(names.iter().filter(|name| **name == "csv").count(), 1, "{names:?}");
    assert!(names.len() > 3, "{names:?}");
}
