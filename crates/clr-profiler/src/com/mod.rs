//! The boundary to the runtime: the COM objects that turn calls of the runtime into calls of
//! [`Callbacks`](crate::Callbacks) and [`Profiler`](crate::Profiler).

#[macro_use]
mod wire;

mod arch;
mod callbacks_v1;
mod callbacks_v2_to_v11;
mod export;
mod framed;
mod object;
mod pin;
mod retired;
mod slices;
mod start;
mod table;

#[cfg(feature = "testing")]
pub use export::factory;
pub use export::get_class_object;
