//! A minimal profiler: copy this folder to start your own.
