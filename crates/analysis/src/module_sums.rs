//! Sums by module. For samples they count those with a function of the module on top, and those
//! with such a function anywhere on the stack.

use clrscope_recording::model::Module;
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::metric::Amount;
use crate::paths::Paths;
use crate::query::Query;
use crate::sums::{Keys, NO_KEY, Summer};
use crate::times::Times;

/// Sums of one module.
pub(crate) struct ModuleSums<'a> {
    pub(crate) module: &'a Module,
    /// Number of the module's functions that occur in samples.
    pub(crate) functions: u64,
    pub(crate) amount: Amount,
}

/// Sums by the number of the function's module.
struct ByModule<'k> {
    /// Module number of each slot; [`NO_KEY`] for functions that are not wanted.
    of: &'k [u32],
    /// For each module, one of its functions.
    functions: &'k [Slot],
}

impl Keys for ByModule<'_> {
    const ARE_SLOTS: bool = false;

    fn key(&mut self, _caller: Slot, callee: Slot) -> u32 {
        self.of.get(callee as usize).copied().unwrap_or(NO_KEY)
    }

    fn root_key(&self) -> u32 {
        NO_KEY
    }

    fn callee(&self, key: u32) -> Slot {
        self.functions[key as usize]
    }
}

/// Sums of the modules of the wanted functions, over the selected threads of a process, in the
/// order of their functions.
pub(crate) fn module_sums<'a>(paths: &Paths<'a>, catalog: &Catalog<'a>, wanted: &[bool]) -> Vec<ModuleSums<'a>> {
    let (mut known, mut of, mut functions) = (FxHashMap::default(), Vec::new(), Vec::new());
    for slot in 0..catalog.len() as Slot {
        let module = catalog.function(slot).module;
        of.push(match wanted.get(slot as usize) {
            Some(true) => *known.entry((&module.name, &module.path, &module.version)).or_insert_with(|| {
                functions.push(slot);
                functions.len() as u32 - 1
            }),
            _ => NO_KEY,
        });
    }
    let columns = Columns::new(paths, catalog, &Query::default());
    let new = || (Summer::default(), vec![Times::default(); functions.len()], vec![false; catalog.len()]);
    let parts = fold(paths.threads.len(), new, |(summer, sums, met), at| {
        let mut tree = paths.threads[at].load();
        tree.functions().iter().skip(1).for_each(|&function| met[catalog.slot(function) as usize] = true);
        let mut keys = ByModule { of: &of, functions: &functions };
        let summed = summer.sum(&mut tree, catalog, &columns.cost, &mut keys);
        for (key, found) in summed.entries() {
            sums[key as usize].add(&columns.times(summed.callee(key), &found));
        }
    });
    let (mut sums, mut met) = (vec![Times::default(); functions.len()], vec![false; catalog.len()]);
    for (_, part, part_met) in parts {
        sums.iter_mut().zip(&part).for_each(|(sum, part)| sum.add(part));
        met.iter_mut().zip(part_met).for_each(|(all, one)| *all |= one);
    }
    let row = |(key, (times, &slot)): (u32, (Times, &Slot))| ModuleSums {
        module: catalog.function(slot).module,
        functions: of.iter().zip(&met).filter(|(of, met)| **of == key && **met).count() as u64,
        amount: times.by(paths.metric).1,
    };
    (0..).zip(sums.into_iter().zip(&functions)).map(row).filter(|sums| sums.amount.total > 0).collect()
}
