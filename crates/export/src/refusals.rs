//! Refuses options that a format can't use, so that no option is silently ignored.

use clrscope_analysis::{Query, QueryProblem};

use crate::{ExportError, ExportOptions};

/// Refuses the first given option that is not in `taken`, the list of accepted options.
pub(crate) fn refuse_all_but(
    taken: &[&str],
    options: &ExportOptions,
    format: &'static str,
    why: &'static str,
) -> Result<(), ExportError> {
    match given(options).find(|option| !taken.contains(option)) {
        Some(option) => Err(QueryProblem::NotAvailable { option, view: format, why }.into()),
        None => Ok(()),
    }
}

/// Refuses a smallest share for a format without shares.
pub(crate) fn refuse_min_share(
    options: &ExportOptions,
    format: &'static str,
    why: &'static str,
) -> Result<(), ExportError> {
    let option = "--min-share";
    options.min_share.map_or(Ok(()), |_| Err(QueryProblem::NotAvailable { option, view: format, why }.into()))
}

/// The given options, named as on the command line.
fn given(options: &ExportOptions) -> impl Iterator<Item = &'static str> {
    let ExportOptions { query, min_share, snapshot } = options;
    let Query { pid, process, threads, functions, modules, parts, since_ns, until_ns, limit, sort, .. } = query;
    let Query { per_thread, raw, just_my_code, no_inlined, paths, native_code, types, metric, requests, .. } = query;
    let Query { symbols, .. } = query;
    let all = [
        ("--pid", pid.is_some()),
        ("--process", process.is_some()),
        ("--thread", !threads.is_empty()),
        ("--function", !functions.is_empty()),
        ("--module", !modules.is_empty()),
        ("--part", !parts.is_empty()),
        ("--since", since_ns.is_some()),
        ("--until", until_ns.is_some()),
        ("--limit", limit.is_some()),
        ("--sort", sort.is_some()),
        ("--per-thread", *per_thread),
        ("--raw", *raw),
        ("--just-my-code", *just_my_code),
        ("--no-inlined", *no_inlined),
        ("--paths", paths.is_some()),
        ("--native-code", native_code.is_some()),
        ("--symbols", symbols.is_some()),
        ("--type", !types.is_empty()),
        ("--metric", metric.is_some()),
        ("--min-share", min_share.is_some()),
        ("--snapshot", snapshot.is_some()),
    ];
    all.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).chain(requests.first_option())
}
