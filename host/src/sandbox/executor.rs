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
    /// In this process.
    Local(Arc<Sandbox>),
    /// In this process, but with serialized copies of the input and the output. Proves that a call needs nothing else
    /// to run in another process.
    #[cfg(feature = "unguarded")]
    Serialized(Arc<Sandbox>),
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
            #[cfg(feature = "unguarded")]
            Self::Serialized(sandbox) => match round_trip(&spec) {
                Ok(spec) => {
                    let outcome = sandbox.call(spec, permit, record).await;
                    round_trip(&outcome).unwrap_or_else(Outcome::failed)
                }
                Err(error) => Outcome::failed(error),
            },
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
            #[cfg(feature = "unguarded")]
            Self::Serialized(sandbox) => sandbox.end_calls(within),
            #[cfg(test)]
            Self::Scripted(_) => {}
        }
    }
}

/// The value after serialization and deserialization.
#[cfg(feature = "unguarded")]
fn round_trip<T>(value: &T) -> Result<T, crate::model::ReadError>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq,
{
    let failed = |why: String| crate::model::ReadError::Internal(format!("cannot copy a call: {why}"));
    let bytes = postcard::to_stdvec(value).map_err(|why| failed(why.to_string()))?;
    let copy: T = postcard::from_bytes(&bytes).map_err(|why| failed(why.to_string()))?;
    if copy != *value {
        return Err(failed("the copy differs from the original".to_owned()));
    }
    Ok(copy)
}
