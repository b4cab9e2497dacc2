//! From a clrscope recording to tables and trees: pure and deterministic.
