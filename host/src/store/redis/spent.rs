//! Marks that all replicas share.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::Script;

use super::link::StoreLink;
use super::names::StoreNames;
use super::news::ReplicaId;
use crate::store::spent::{Spending, SpentMarks};

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("spent.lua")));

/// See the module.
pub(super) struct SharedSpentMarks {
    link: Arc<StoreLink>,
    names: StoreNames,
    own: String,
}

impl SharedSpentMarks {
    /// Marks of the replica `own` in the store of `link`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32], own: ReplicaId) -> Self {
        Self { link, names: StoreNames::new(secret), own: data_encoding::HEXLOWER.encode(&own) }
    }
}

impl SpentMarks for SharedSpentMarks {
    fn spend(&self, number: u128, time: Duration) -> BoxFuture<'_, Spending> {
        async move {
            let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
            let mut script = SCRIPT.prepare_invoke();
            script.key(self.names.spent(number)).arg(&self.own).arg(milliseconds);
            match self.link.run_script::<i64>(&script).await {
                Ok(1) => Spending::First,
                Ok(_) => Spending::Again,
                Err(_) => Spending::Unknown,
            }
        }
        .boxed()
    }
}
