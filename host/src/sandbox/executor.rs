//! Executors of calls.

use std::sync::Arc;
use std::time::Duration;

use super::local::Sandbox;
use super::spec::{CallSpec, Outcome};
use crate::grants::CallRecord;
use crate::limits::Permit;

/// An executor: the place where calls run.
#[derive(Clone)]
pub enum Executor {
    /// The sandbox of this process, which runs each call here or in a worker process.
    Local(Arc<Sandbox>),
    /// A function of a test, in place of components.
    #[cfg(test)]
    Scripted(Script),
}

/// Answers calls in a test.
#[cfg(test)]
pub(crate) type Script =
    Arc<dyn Fn(CallSpec, Permit) -> futures_util::future::BoxFuture<'static, Outcome> + Send + Sync>;

impl Executor {
    /// Runs one call in a fresh instance. Dropping the future stops the guest and frees its resources. Decisions and
    /// usage are written to `record` while the call runs, so they survive a call that is cancelled or hangs.
    pub async fn execute(&self, spec: CallSpec, permit: Permit, record: &CallRecord) -> Outcome {
        match self {
            Self::Local(sandbox) => sandbox.call(spec, permit, record).await,
            #[cfg(test)]
            Self::Scripted(script) => script(spec, permit).await,
        }
    }
}

impl Executor {
    /// Stops all calls. Must be called before the serving runtime ends, and from outside of every runtime. Waits for at
    /// most `within`.
    pub fn end_calls(&self, within: Duration) {
        match self {
            Self::Local(sandbox) => sandbox.end_calls(within),
            #[cfg(test)]
            Self::Scripted(_) => {}
        }
    }
}
