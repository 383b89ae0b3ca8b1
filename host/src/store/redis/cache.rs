//! Answers that replicas share, and calls that one replica makes for all.
//!
//! Answers are sealed with the key of the replicas: the store can neither read nor make one. Each says until when it is
//! fresh, so an old one that is played back is refused. An answer belongs to the epoch of its mount in which its call began.
//! A change begins a new epoch, so a call that saw what was before leaves nothing behind.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use redis::Script;
use serde::{Deserialize, Serialize};

use super::link::StoreLink;
use super::names::StoreNames;
use super::news::ReplicaId;
use crate::model::seal::Seal;

/// The longest answer that is opened, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// Clocks of replicas may differ by this time.
const CLOCK_ERROR: Duration = Duration::from_secs(5);

static GET: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("cache_get.lua")));
static PUT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("cache_put.lua")));
static CHANGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("cache_change.lua")));

/// Identifies an answer: the version of its mount, and a hash of everything else that it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerId {
    /// The key of the mount.
    pub mount: [u8; 32],
    /// The reference, the class of access, and the configuration.
    pub answer: [u8; 32],
}

/// The right to make a call for all replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallLead {
    id: AnswerId,
    epoch: String,
}

/// The outcome of a look-up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerLookup {
    /// The answer, and for how long it is fresh.
    Found(Vec<u8>, Duration),
    /// There is none, and this replica makes the call.
    Lead(CallLead),
    /// Another replica makes the call.
    Wait,
    /// The store is down.
    Down,
}

/// An answer, and when it is no longer fresh, in milliseconds since the Unix epoch.
#[derive(Serialize, Deserialize)]
struct SealedAnswer {
    until: u64,
    #[serde(with = "serde_bytes")]
    body: Vec<u8>,
}

/// See the module.
pub(super) struct SharedAnswers {
    link: Arc<StoreLink>,
    names: StoreNames,
    seal: Seal,
    own: String,
}

/// Now, in milliseconds since the Unix epoch.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Who an answer is sealed for.
fn holder(id: &AnswerId) -> String {
    data_encoding::HEXLOWER.encode(&[id.mount, id.answer].concat())
}

impl SharedAnswers {
    /// The answers of the replica `own`.
    pub(super) fn new(link: Arc<StoreLink>, secret: &[u8; 32], own: ReplicaId) -> Self {
        let seal = Seal::new("belljar 2026-11 answers of replicas", secret);
        Self { link, names: StoreNames::new(secret), seal, own: data_encoding::HEXLOWER.encode(&own) }
    }

    /// Looks for an answer. If this replica shall make the call, no other one makes it for `longest`.
    pub(super) async fn find(&self, id: AnswerId, longest: Duration) -> AnswerLookup {
        let [epoch, answer, flight] = self.names.answer(&id.mount, &id.answer);
        let mut script = GET.prepare_invoke();
        script.key(epoch).key(answer).key(flight).arg(&self.own).arg(milliseconds(longest).max(1));
        let Ok(reply) = self.link.run_script::<Vec<String>>(&script).await else { return AnswerLookup::Down };
        match reply.as_slice() {
            [word, sealed, left] if word == "found" => match self.open(&id, sealed, left) {
                Some((body, fresh_for)) => AnswerLookup::Found(body, fresh_for),
                // Nobody with the key made it. The call is made as if there were no store.
                None => AnswerLookup::Down,
            },
            [word, epoch] if word == "lead" => AnswerLookup::Lead(CallLead { id, epoch: epoch.clone() }),
            _ => AnswerLookup::Wait,
        }
    }

    fn open(&self, id: &AnswerId, sealed: &str, left: &str) -> Option<(Vec<u8>, Duration)> {
        let body = (sealed.len() <= MAX_ANSWER).then(|| self.seal.open(0, &holder(id), sealed).ok())??;
        let SealedAnswer { until, body } = postcard::from_bytes(&body).ok()?;
        let latest = until.saturating_add(milliseconds(CLOCK_ERROR));
        let left = Duration::from_millis(left.parse().ok()?);
        (now() < latest).then(|| (body, left.min(Duration::from_millis(latest - now()))))
    }

    /// Ends a call. `answer`: the answer and for how long it is fresh, if others may have it.
    pub(super) async fn end(&self, lead: CallLead, answer: Option<(Vec<u8>, Duration)>) {
        let CallLead { id, epoch } = lead;
        let [epoch_key, answer_key, flight] = self.names.answer(&id.mount, &id.answer);
        let (sealed, fresh_for) = match answer {
            Some((body, fresh_for)) => {
                let until = now().saturating_add(milliseconds(fresh_for));
                let body = postcard::to_stdvec(&SealedAnswer { until, body }).unwrap_or_default();
                (self.seal.seal(0, &holder(&id), body), milliseconds(fresh_for))
            }
            None => (String::new(), 0),
        };
        let fresh_for = if sealed.len() <= MAX_ANSWER { fresh_for } else { 0 };
        let mut script = PUT.prepare_invoke();
        script.key(epoch_key).key(answer_key).key(flight).arg(&self.own).arg(epoch).arg(fresh_for);
        script.arg(if fresh_for > 0 { sealed.as_str() } else { "" });
        let _ = self.link.run_script::<i64>(&script).await;
    }

    /// Forgets all answers of a mount.
    pub(super) async fn change(&self, mount: &[u8; 32]) {
        let [epoch, ..] = self.names.answer(mount, &[0; 32]);
        let _ = self.link.run_script::<i64>(CHANGE.prepare_invoke().key(epoch)).await;
    }
}
