//! Restores the original code of methods.

use clr_profiler::ProfilerInfo;
use clrscope_agent_base::developer_log::{Level, log};

use super::kept_code::{self, Method};

/// Restores the original code of methods. New calls run the original code; calls that have begun
/// end in the code in which they began. A method with kept code that had inlined one of these
/// methods stays compiled without the inlined copy. `who` names the instrument that had changed the
/// methods.
pub(crate) fn revert(info: &ProfilerInfo, who: &str, methods: &[Method]) {
    let methods: Vec<Method> = methods.iter().copied().filter(|method| !kept_code::is_kept(*method)).collect();
    if methods.is_empty() {
        return;
    }
    match info.request_revert(&methods) {
        Ok(each) => {
            let refused = each.iter().filter_map(|one| one.as_ref().err()).collect::<Vec<_>>();
            log(Level::Info, || {
                let first = refused.first().map(ToString::to_string).unwrap_or_default();
                format!("{who}: {} methods have their own code again, {} not {first}", methods.len(), refused.len())
            });
        }
        Err(error) => log(Level::Warn, || format!("{who}: {} methods keep their code: {error}", methods.len())),
    }
}
