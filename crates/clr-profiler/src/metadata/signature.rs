//! Signatures: how the metadata encodes the types of methods, fields and instantiations (ECMA-335 II.23.2).
