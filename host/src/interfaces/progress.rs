//! `progress`, the one interface that a provider may import from belljar: reports of a call about itself.

use wasmtime::component::{HasData, Linker};

use super::generated::belljar::provider::progress as generated;
use crate::grants::CallRecord;

/// A store that has the record of its call.
pub trait HasRecord: Send + 'static {
    /// The record.
    fn call_record(&mut self) -> &CallRecord;
}

/// The host functions of one call.
pub struct ProgressHost<'a>(&'a CallRecord);

impl generated::Host for ProgressHost<'_> {
    fn report(&mut self, done: f64, total: Option<f64>, note: Option<String>) {
        self.0.report_progress(done, total, note);
    }
}

struct InStore;

impl HasData for InStore {
    type Data<'a> = ProgressHost<'a>;
}

/// Adds the interface to the linker. Every component may import it.
///
/// # Errors
/// If the linker refuses a definition.
pub fn link<T: HasRecord>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    generated::add_to_linker::<T, InStore>(linker, |store| ProgressHost(store.call_record()))
}
