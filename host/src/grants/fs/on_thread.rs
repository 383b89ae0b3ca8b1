//! Attempts that may have to block: first on the current thread, where they may not, then on the call's dedicated thread.

use wasmtime::StoreContextMut;

use super::name::Fs;
use super::resolve::ResolveError;
use crate::grants::grant::{HasCallState, record_fuel};

/// Runs `attempt` on the current thread, where it may not block. If it needs to block, runs it again on a dedicated
/// thread.
pub(super) async fn retry_on_dedicated_thread<T: HasCallState<Fs>, R>(
    store: &mut StoreContextMut<'_, T>,
    attempt: impl Fn(bool) -> Result<R, ResolveError>,
) -> Result<R, ResolveError> {
    record_fuel(store);
    let thread = store.data_mut().call_state().thread();
    match attempt(thread.may_block()) {
        Err(ResolveError::NeedsThread) => {
            let thread = thread.clone();
            thread.request().await;
            attempt(true)
        }
        done => done,
    }
}
