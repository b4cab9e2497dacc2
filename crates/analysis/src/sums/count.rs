//! The first pass: calls and hooks by function.

use clrscope_recording::model::{CallTree, ROOT};

use crate::catalog::{Catalog, Role, Slot};
use crate::cost::{Cost, Hooks};

/// Number of calls of a function, and number of enter hooks that ran in calls made by the function.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) calls: u64,
    pub(super) enters: u64,
}

/// Reusable memory of the first pass.
#[derive(Default)]
pub(super) struct Counter {
    /// By slot.
    counts: Vec<Counts>,
    walls: Vec<u64>,
    fits: Vec<f64>,
}

impl Counter {
    /// Counts of a slot.
    pub(super) fn counts(&self, slot: Slot) -> Counts {
        self.counts.get(slot as usize).copied().unwrap_or_default()
    }

    /// Counts the nodes of a tree, whatever their order.
    pub(super) fn count(&mut self, tree: &CallTree, catalog: &Catalog<'_>) {
        self.counts.clear();
        self.counts.resize(catalog.len() + 1, Counts::default());
        let (parents, functions) = (tree.parents(), tree.functions());
        let nodes = parents.iter().zip(functions).zip(tree.calls_in_order()).skip(1);
        for ((&parent, &function), calls) in nodes {
            let place = catalog.slot_role(function);
            let counts = &mut self.counts[place.slot as usize];
            counts.calls = counts.calls.saturating_add(calls);
            if place.role == Role::Managed {
                let caller = if parent == ROOT { catalog.root() } else { catalog.slot(functions[parent as usize]) };
                let counts = &mut self.counts[caller as usize];
                counts.enters = counts.enters.saturating_add(calls);
            }
        }
    }

    /// By slot, the part of the modelled cost of the counted hooks that fits into the measured
    /// time.
    pub(super) fn fits(&mut self, tree: &CallTree, catalog: &Catalog<'_>, cost: &Cost) -> &[f64] {
        self.fits.clear();
        self.fits.resize(catalog.len() + 1, 1.0);
        if cost.is_zero() {
            return &self.fits;
        }
        self.walls.clear();
        self.walls.resize(catalog.len() + 1, 0);
        for (node, values) in tree.values() {
            let Some(&function) = tree.functions().get(*node as usize) else { continue };
            let slot = if *node == ROOT { catalog.root() } else { catalog.slot(function) };
            let wall = &mut self.walls[slot as usize];
            *wall = wall.saturating_add(values.metric);
        }
        for (slot, fit) in self.fits.iter_mut().enumerate() {
            let Counts { calls, enters } = self.counts[slot];
            let leaves = if catalog.role(slot as Slot) == Role::Managed { calls } else { 0 };
            *fit = cost.fit(slot as Slot, Hooks { enters, leaves }, self.walls[slot]);
        }
        &self.fits
    }
}
