//! From clrscope analysis to foreign formats.
