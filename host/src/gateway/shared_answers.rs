//! Answers that replicas share: those that take long or need other servers. All others cost less than to ask the store.
//!
//! What is shared here is what callers of one process share already (`gateway::read_cache`): fresh readings, for the same
//! version of a mount, reference and class of access.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::pipeline::Gateway;
use crate::catalog::Mount;
use crate::model::Reading;
use crate::policy::Access;
use crate::store::{AnswerId, AnswerLookup, CallLead, SharedStore};

/// A call that takes longer is worth asking the store for its answer.
const EXPENSIVE: Duration = Duration::from_millis(5);

/// The pause before the store is asked again for an answer that another replica is about to have.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The longest wait for another replica. After it, this one makes its own call.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The outcome of a look-up for a read.
pub(super) enum SharedAnswer {
    /// Another replica had it.
    Found(Box<Reading>),
    /// This replica makes the call, for all if there is a lead.
    Call(Option<Lead>),
}

/// The right to make a call for all replicas. Given back if the call is withdrawn, so that the others need not wait.
pub(super) struct Lead {
    lead: Option<CallLead>,
    store: Arc<SharedStore>,
}

impl Drop for Lead {
    fn drop(&mut self) {
        if let Some(lead) = self.lead.take() {
            let store = Arc::clone(&self.store);
            tokio::spawn(async move { store.end_call(lead, None).await });
        }
    }
}

/// True if the store is asked for answers of `mount`: if the last one stayed fresh, and took long or came from other servers.
pub(super) fn is_worth_sharing(mount: &Mount) -> bool {
    mount.cached.is_worth_sharing().unwrap_or_else(|| mount.reaches_servers())
}

/// Notes that a call of `mount` that began at `began` gave this answer.
pub(super) fn note_answer(mount: &Mount, began: Instant, reading: &Reading) {
    let is_fresh = reading.fresh_for.is_some_and(|fresh| !fresh.is_zero());
    mount.cached.note_worth(is_fresh && (mount.reaches_servers() || began.elapsed() >= EXPENSIVE));
}

impl Gateway {
    /// The id of an answer among those that replicas share. `None` if it is not shared.
    pub(super) fn answer_id(&self, mount: &Mount, reference: &str, access: &Access) -> Option<AnswerId> {
        let class = access.class().name()?;
        let is_asked = self.has_store() && is_worth_sharing(mount);
        if !is_asked || mount.cached.is_changing() || mount.is_per_principal() {
            return None;
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.fingerprint.load().settings).update(&class.to_le_bytes()).update(reference.as_bytes());
        Some(AnswerId { mount: mount.cached.key().bytes(), answer: hasher.finalize().into() })
    }

    /// Looks for the answer of another replica, and waits for it if one is making the call.
    pub(super) async fn find_shared_answer(&self, mount: &Mount, id: AnswerId) -> SharedAnswer {
        let Some(store) = self.store() else { return SharedAnswer::Call(None) };
        let (longest, mut pause) = (mount.gate.limits().time.min(LONGEST_WAIT), FIRST_PAUSE);
        let until = Instant::now() + longest;
        loop {
            match store.find_answer(id, longest + LONGEST_PAUSE).await {
                AnswerLookup::Found(body, fresh_for) if !fresh_for.is_zero() => {
                    match postcard::from_bytes::<Reading>(&body) {
                        Ok(reading) => {
                            let reading = Reading { fresh_for: Some(fresh_for), ..reading };
                            return SharedAnswer::Found(Box::new(reading));
                        }
                        Err(_) => return SharedAnswer::Call(None),
                    }
                }
                AnswerLookup::Lead(lead) => {
                    return SharedAnswer::Call(Some(Lead { lead: Some(lead), store: Arc::clone(store) }));
                }
                AnswerLookup::Wait if Instant::now() < until => {}
                _ => return SharedAnswer::Call(None),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Ends a call that was made for all. `reading`: its answer, if callers may share it.
    pub(super) async fn end_shared_call(&self, mut guard: Lead, reading: Option<&Reading>) {
        let Some(lead) = guard.lead.take() else { return };
        let fresh = |reading: &&Reading| reading.fresh_for.is_some_and(|fresh| !fresh.is_zero());
        let answer = reading
            .filter(fresh)
            .and_then(|reading| Some((postcard::to_stdvec(reading).ok()?, reading.fresh_for.unwrap_or_default())));
        guard.store.end_call(lead, answer).await;
    }

    /// Forgets the answers of a mount that replicas share. Until this returns, this replica uses none of them.
    pub(super) async fn change_shared_answers(&self, mount: &Mount) {
        if let Some(store) = self.store() {
            mount.cached.set_changing(true);
            store.change_answers(&mount.cached.key().bytes()).await;
            mount.cached.set_changing(false);
        }
    }
}
