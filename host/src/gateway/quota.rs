//! Counts requests of clients against their quotas.
//!
//! A request counts once, however many calls it makes, and also if a cache or another request's call answers it. It
//! counts before the first call. The bytes of the answer count when they are known.

use std::sync::Arc;

use super::pipeline::Gateway;
use crate::limits::AnswerQuota;
use crate::model::{Fault, MountName, ReadError, Reading};
use crate::policy::{Access, Action, Caller};
use crate::telemetry::Event;

impl Gateway {
    /// Counts a tool call or completion, `operation`, against the rate of `caller`.
    ///
    /// # Errors
    /// When the caller exceeds its rate.
    pub async fn count_request(&self, caller: &Caller, operation: &'static str) -> Result<(), Fault> {
        let counted = self.admission.count_request(caller.id()).await;
        counted.map_err(|error| self.refuse(caller, operation, error))
    }

    /// Counts a request about several mounts, or about `only` one: a list, a search or a completion, as `action` says.
    /// It counts once for each rule that allows it.
    ///
    /// # Errors
    /// When the caller has used up a rate.
    pub async fn count_action(
        &self,
        caller: &Caller,
        action: Action,
        only: Option<&MountName>,
    ) -> Result<AnswerQuota, Fault> {
        let snapshot = self.loaded_snapshot().await;
        let mut rates = Vec::new();
        if self.has_rules() {
            for mount in snapshot.mounts().iter().filter(|mount| only.is_none_or(|only| mount.name == *only)) {
                let visibility = self.visibility(&caller.principal, action, mount);
                rates.extend(visibility.rates().iter().map(Arc::clone));
            }
        }
        let counted = self.admission.count_rules(&caller.principal, rates.iter()).await;
        counted.map_err(|error| self.refuse(caller, operation(action), error))
    }

    /// Counts a request about one resource.
    ///
    /// # Errors
    /// [`ReadError::Busy`] when the caller has used up a rate. The caller of this function records the refusal.
    pub(super) async fn count_access(&self, access: &Access) -> Result<AnswerQuota, ReadError> {
        self.admission.count_rules(access.principal(), access.rates().iter()).await
    }

    fn refuse(&self, caller: &Caller, operation: &'static str, error: ReadError) -> Fault {
        self.audit.record(Event::new(caller.clone(), operation, Err(error.clone().into())));
        Fault { error, mount: None, uri: None }
    }
}

/// The name of an action in the record.
fn operation(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::List => "list",
        Action::Search => "search",
        Action::Complete => "complete",
        Action::Describe => "describe",
        Action::Watch => "watch",
        Action::Call => "call-tool",
        Action::Prompt => "get-prompt",
    }
}

/// The bytes of a reading that count.
pub(super) fn bytes(reading: &Reading) -> usize {
    reading.contents.iter().map(|contents| contents.body.len()).sum()
}
