//! The first pass: calls and hooks by function.

use clrscope_recording::model::{CallTree, ROOT};

use crate::catalog::{Catalog, Role, Slot};
use crate::cost::{Cost, Hooks};

/// Calls of a function, and the enter hooks of those it made.
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
    /// The path above the node before, with slots.
    path: Vec<(u32, Slot)>,
}

impl Counter {
    /// What was counted for a slot.
    pub(super) fn counts(&self, slot: Slot) -> Counts {
        self.counts.get(slot as usize).copied().unwrap_or_default()
    }

    /// Counts as long as each node's parent lies on the path to the node before it; whether that holds
    /// to the end.
    pub(super) fn count(&mut self, tree: &CallTree, catalog: &Catalog<'_>) -> bool {
        self.counts.clear();
        self.counts.resize(catalog.len() + 1, Counts::default());
        self.path.clear();
        let mut before = (ROOT, catalog.root());
        let nodes = tree.parents().iter().zip(tree.functions()).zip(tree.calls_in_order());
        for (node, ((&parent, &function), calls)) in (0..).zip(nodes).skip(1) {
            if parent == before.0 {
                self.path.push(before);
            } else {
                while self.path.pop_if(|above| above.0 > parent).is_some() {}
            }
            let Some(caller) = self.path.last().filter(|caller| caller.0 == parent) else { return false };
            let place = catalog.place(function);
            let counts = &mut self.counts[place.slot as usize];
            counts.calls = counts.calls.saturating_add(calls);
            if place.role == Role::Managed {
                let counts = &mut self.counts[caller.1 as usize];
                counts.enters = counts.enters.saturating_add(calls);
            }
            before = (node, place.slot);
        }
        true
    }

    /// By slot, the part of the modelled cost of the counted hooks that fits into the measured time.
    pub(super) fn fits(&mut self, tree: &CallTree, catalog: &Catalog<'_>, cost: &Cost) -> &[f64] {
        self.fits.clear();
        self.fits.resize(catalog.len() + 1, 1.0);
        if cost.is_zero() {
            return &self.fits;
        }
        self.walls.clear();
        self.walls.resize(catalog.len() + 1, 0);
        for (node, time) in tree.times() {
            let Some(&function) = tree.functions().get(*node as usize) else { continue };
            let slot = if *node == ROOT { catalog.root() } else { catalog.slot(function) };
            let wall = &mut self.walls[slot as usize];
            *wall = wall.saturating_add(time.wall_ns);
        }
        for (slot, fit) in self.fits.iter_mut().enumerate() {
            let Counts { calls, enters } = self.counts[slot];
            let leaves = if catalog.role(slot as Slot) == Role::Managed { calls } else { 0 };
            *fit = cost.fit(Hooks { enters, leaves }, self.walls[slot]);
        }
        &self.fits
    }
}
