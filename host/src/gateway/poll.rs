//! Polls watched resources. A resource that crashes its provider, or uses all of its time, does not stop the polls of
//! the others.
//!
//! Resources that answered the last time come first. They share one call if the provider exports the revisions
//! interface. When such a call crashes, the resources of each subscriber are polled in separate calls, and then by
//! halves. A resource that crashes alone is polled less and less often, after all others, and within a bound on time.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use tokio::time::Instant;

use super::call_group::CallGroup;
use super::pipeline::{Gateway, MountCall};
use super::poll_target::{PollResult, PollTarget, ResourceState};
use crate::catalog::Mount;
use crate::interfaces::resources;
use crate::interfaces::revisions::ResourceRevisions;
use crate::model::bounds::SUSPECT_POLL_TIME;
use crate::model::{Body, ReadError, Reading};
use crate::policy::{Caller, Evidence, authenticate};

/// The caller of polls, as it stands in records.
pub(super) static POLL_CALLER: LazyLock<Caller> =
    LazyLock::new(|| Caller::new(authenticate(Evidence::Polling), "watch"));

/// Crashes after which one subscriber's resources are no longer bisected in one poll. Halving 1,000 resources takes
/// ten.
const MAX_CRASHES: usize = 16;

/// The same for reads, which cannot be bisected.
const MAX_CRASHED_READS: usize = 2;

const NO_TURN: PollResult = PollResult::Unknown { is_answered: false };

/// The result of one call for several resources.
enum RevisionsReply {
    Results(Vec<PollResult>),
    /// There was no turn for the call, or it failed in a way that says nothing about the resources.
    NoTurn,
    /// The call crashed. If it reached a limit, a call for fewer resources may succeed.
    Crashed {
        at_limit: bool,
    },
}

/// The polled resources of one subscriber.
struct SubscriberTargets {
    targets: Vec<PollTarget>,
    /// True if the last poll of one of them crashed.
    is_suspect: bool,
}

/// True if the error shows that the call crashed the provider.
fn is_crash(error: &ReadError) -> bool {
    matches!(
        error,
        ReadError::Trapped(_) | ReadError::Exhausted(_) | ReadError::BadOutput(_) | ReadError::CircuitOpen { .. }
    )
}

/// Groups targets by subscriber. Subscribers without suspect resources come first.
fn by_subscriber(targets: Vec<PollTarget>) -> Vec<SubscriberTargets> {
    let mut batches: HashMap<u64, SubscriberTargets> = HashMap::new();
    for target in targets {
        let batch = batches
            .entry(target.subscriber)
            .or_insert_with(|| SubscriberTargets { targets: Vec::new(), is_suspect: false });
        batch.is_suspect |= target.is_suspect;
        batch.targets.push(target);
    }
    let mut batches: Vec<_> = batches.into_values().collect();
    batches.sort_by_key(|batch| batch.is_suspect);
    batches
}

/// Interleaves the targets: one of each subscriber, then the next of each.
fn interleaved(targets: Vec<PollTarget>) -> Vec<PollTarget> {
    let mut batches: Vec<_> = by_subscriber(targets).into_iter().map(|batch| batch.targets.into_iter()).collect();
    let mut all = Vec::new();
    while !batches.is_empty() {
        batches.retain_mut(|batch| batch.next().map(|target| all.push(target)).is_some());
    }
    all
}

fn hash_of(revision: &str) -> ResourceState {
    ResourceState::Present(blake3::hash(revision.as_bytes()))
}

/// A hash of everything that a client sees of a reading.
fn hash_of_contents(reading: &Reading) -> ResourceState {
    let mut hasher = blake3::Hasher::new();
    let mut put = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for contents in &reading.contents {
        put(contents.reference.as_bytes());
        put(contents.mime_type.as_deref().unwrap_or_default().as_bytes());
        match &contents.body {
            Body::Text(text) => put(text.as_bytes()),
            Body::Blob(bytes) => put(bytes),
        }
        for (name, value) in &contents.meta {
            put(name.as_bytes());
            put(value.as_bytes());
        }
    }
    ResourceState::Present(hasher.finalize())
}

impl Gateway {
    /// Polls `targets` in `mount`. Calls `report` for each target as soon as its result is known.
    pub(super) async fn poll_resources(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        targets: Vec<PollTarget>,
        mut report: impl FnMut(&PollTarget, PollResult),
    ) {
        if targets.is_empty() {
            return;
        }
        if !mount.interfaces.revisions {
            return self.poll_by_reading(group, mount, targets, report).await;
        }
        let (known, others): (Vec<PollTarget>, Vec<PollTarget>) =
            targets.into_iter().partition(|target| target.is_known);
        let mut chunk = self.subscriptions.registry().chunk(&mount.name);
        let mut crashed = Vec::new();
        for batch in known.chunks(chunk) {
            match self.poll_by_revisions(group, mount, batch).await {
                RevisionsReply::Results(all) => {
                    batch.iter().zip(all).for_each(|(target, result)| report(target, result))
                }
                RevisionsReply::NoTurn => batch.iter().for_each(|target| report(target, NO_TURN)),
                RevisionsReply::Crashed { at_limit } => {
                    self.subscriptions.registry().adapt_chunk(&mount.name, batch.len(), !at_limit);
                    crashed.extend_from_slice(batch);
                }
            }
        }
        if crashed.is_empty() && !known.is_empty() {
            self.subscriptions.registry().adapt_chunk(&mount.name, chunk, true);
        }
        let end = Instant::now() + SUSPECT_POLL_TIME.get();
        chunk = self.subscriptions.registry().chunk(&mount.name);
        for batch in by_subscriber(crashed) {
            self.bisect_crashes((group, mount), batch.targets, (end, chunk), &mut report).await;
        }
        for batch in by_subscriber(others) {
            if Instant::now() < end {
                self.bisect_crashes((group, mount), batch.targets, (end, chunk), &mut report).await;
            }
        }
    }

    /// Polls the resources of one subscriber, and bisects calls that crash.
    async fn bisect_crashes(
        &self,
        (group, mount): (&CallGroup, &Arc<Mount>),
        targets: Vec<PollTarget>,
        (end, chunk): (Instant, usize),
        report: &mut impl FnMut(&PollTarget, PollResult),
    ) {
        let mut batches: Vec<Vec<PollTarget>> = targets.chunks(chunk).map(<[PollTarget]>::to_vec).collect();
        let mut crashes = 0;
        while let Some(mut batch) = batches.pop() {
            if crashes > 0 && (crashes >= MAX_CRASHES || Instant::now() >= end) {
                batch.iter().for_each(|target| report(target, PollResult::Crashed));
                continue;
            }
            match self.poll_by_revisions(group, mount, &batch).await {
                RevisionsReply::Results(all) => {
                    batch.iter().zip(all).for_each(|(target, result)| report(target, result))
                }
                RevisionsReply::NoTurn => batch.iter().for_each(|target| report(target, NO_TURN)),
                RevisionsReply::Crashed { .. } if batch.len() == 1 => {
                    crashes += 1;
                    batch.iter().for_each(|target| report(target, PollResult::Crashed));
                }
                RevisionsReply::Crashed { .. } => {
                    crashes += 1;
                    let rest = batch.split_off(batch.len() / 2);
                    batches.extend([rest, batch]);
                }
            }
        }
    }

    /// Asks the provider for the revisions of `targets`.
    async fn poll_by_revisions(&self, group: &CallGroup, mount: &Arc<Mount>, targets: &[PollTarget]) -> RevisionsReply {
        let references = targets.iter().map(|target| target.reference.clone()).collect();
        match self.call(MountCall::in_group(group, mount), ResourceRevisions { references }).await.0 {
            Ok(revisions) => {
                let each = revisions.iter().map(|revision| match revision {
                    Ok(revision) => PollResult::Known(hash_of(revision)),
                    Err(ReadError::NotFound) => PollResult::Known(ResourceState::Absent),
                    Err(_) => PollResult::Unknown { is_answered: true },
                });
                RevisionsReply::Results(each.collect())
            }
            Err(error) if is_crash(&error) => RevisionsReply::Crashed { at_limit: error.limit().is_some() },
            Err(_) => RevisionsReply::NoTurn,
        }
    }

    /// Reads each target. A subscriber whose reads crash repeatedly is skipped until the next poll.
    async fn poll_by_reading(
        &self,
        group: &CallGroup,
        mount: &Arc<Mount>,
        targets: Vec<PollTarget>,
        mut report: impl FnMut(&PollTarget, PollResult),
    ) {
        let (known, others): (Vec<PollTarget>, Vec<PollTarget>) =
            targets.into_iter().partition(|target| target.is_known);
        let mut crashes: HashMap<u64, usize> = HashMap::new();
        let mut end = None;
        for target in interleaved(known).into_iter().chain(interleaved(others)) {
            let crashed = crashes.entry(target.subscriber).or_default();
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if *crashed >= MAX_CRASHED_READS || (is_over && !target.is_known) {
                continue;
            }
            let function = resources::Read { reference: target.reference.clone() };
            let read = self.call(MountCall::in_group(group, mount), function).await.0;
            let result = match read {
                Ok(reading) => PollResult::Known(hash_of_contents(&reading)),
                Err(ReadError::NotFound) => PollResult::Known(ResourceState::Absent),
                Err(error) if is_crash(&error) => {
                    *crashed += 1;
                    end.get_or_insert_with(|| Instant::now() + SUSPECT_POLL_TIME.get());
                    PollResult::Crashed
                }
                Err(error) => PollResult::Unknown { is_answered: !matches!(error, ReadError::Busy(_)) },
            };
            report(&target, result);
        }
    }
}
