//! How watched resources are looked at, so that one that crashes its provider, or takes all of its time, silences no other.
//!
//! Those that answered last time are asked for first, all in one call where the provider tells revisions. When such a call
//! crashes, each watcher's resources are asked for apart from the others', and then by halves. What crashes alone is asked
//! less and less often, and within a bound on time, behind all that answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::due::{Due, Found, Seen};
use super::walk::Walk;
use super::{Gateway, answers, check};
use crate::catalog::Mount;
use crate::model::{Answer, Body, Caller, Guard, Operation, ReadError, Reading};

/// Who asks in a round.
pub(super) const ROUNDS: Caller = Caller { transport: "watch", client: None, peer: 0 };

/// How long a look goes on with what is not known to answer, after the first crash.
const HUNT: Duration = Duration::from_secs(1);

/// Crashes for which one watcher's resources are asked for in one look. Halving a thousand takes ten.
const CRASHES: usize = 16;

/// Crashes of reads, which cannot be halved.
const CRASHED_READS: usize = 2;

const UNASKED: Found = Found::Nothing { is_answered: false };

/// What one call for several resources came to.
enum Asked {
    Told(Vec<Found>),
    /// It says nothing about the resources.
    NoTurn,
    /// It crashed; at a limit, fewer may fit.
    Crashed {
        at_limit: bool,
    },
}

/// The resources of one watcher.
struct Part {
    due: Vec<Due>,
    /// Whether any of them is known not to answer.
    is_suspect: bool,
}

/// Whether an answer says that asking crashed the provider.
fn is_crash(error: &ReadError) -> bool {
    matches!(error, ReadError::Trapped(_) | ReadError::Exhausted(_) | ReadError::BadOutput(_) | ReadError::Again { .. })
}

/// By watcher; those first of whom nothing is suspect.
fn by_watcher(due: Vec<Due>) -> Vec<Part> {
    let mut parts: HashMap<u64, Part> = HashMap::new();
    for one in due {
        let part = parts.entry(one.watcher).or_insert_with(|| Part { due: Vec::new(), is_suspect: false });
        part.is_suspect |= one.is_suspect;
        part.due.push(one);
    }
    let mut parts: Vec<_> = parts.into_values().collect();
    parts.sort_by_key(|part| part.is_suspect);
    parts
}

/// One of each watcher's after the other.
fn in_turns(due: Vec<Due>) -> Vec<Due> {
    let mut parts: Vec<_> = by_watcher(due).into_iter().map(|part| part.due.into_iter()).collect();
    let mut all = Vec::new();
    while !parts.is_empty() {
        parts.retain_mut(|part| part.next().map(|one| all.push(one)).is_some());
    }
    all
}

fn hash_of(revision: &str) -> Seen {
    Seen::There(blake3::hash(revision.as_bytes()))
}

/// A hash of everything that a client sees of a reading.
fn hash_of_contents(reading: &Reading) -> Seen {
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
    Seen::There(hasher.finalize())
}

impl Gateway {
    /// Looks at what is `due` in `mount`, and says of each what was `found`, as soon as that is known.
    pub(super) async fn look(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        due: Vec<Due>,
        mut found: impl FnMut(&Due, Found),
    ) {
        if due.is_empty() {
            return;
        }
        if !mount.revises {
            return self.look_by_reading(walk, mount, due, found).await;
        }
        let (known, mut others): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|one| one.is_known);
        let mut chunk = self.watching.books().chunk(&mount.name);
        let mut crashed = Vec::new();
        for part in known.chunks(chunk) {
            match self.ask(walk, mount, part).await {
                Asked::Told(all) => part.iter().zip(all).for_each(|(one, what)| found(one, what)),
                Asked::NoTurn => part.iter().for_each(|one| found(one, UNASKED)),
                Asked::Crashed { at_limit } => {
                    self.watching.books().fits(&mount.name, part.len(), !at_limit);
                    crashed.extend_from_slice(part);
                }
            }
        }
        if crashed.is_empty() && !known.is_empty() {
            self.watching.books().fits(&mount.name, chunk, true);
        }
        if !Guard::Suspects.is_on() {
            crashed.append(&mut others);
            return crashed.iter().for_each(|one| found(one, UNASKED));
        }
        let end = Instant::now() + HUNT;
        chunk = self.watching.books().chunk(&mount.name);
        for part in by_watcher(crashed) {
            self.hunt((walk, mount), part.due, (end, chunk), &mut found).await;
        }
        for part in by_watcher(others) {
            if Instant::now() < end {
                self.hunt((walk, mount), part.due, (end, chunk), &mut found).await;
            }
        }
    }

    /// Asks for the resources of one watcher, and where that crashes, by halves.
    async fn hunt(
        &self,
        (walk, mount): (&Walk, &Arc<Mount>),
        due: Vec<Due>,
        (end, chunk): (Instant, usize),
        found: &mut impl FnMut(&Due, Found),
    ) {
        let mut parts: Vec<Vec<Due>> = due.chunks(chunk).map(<[Due]>::to_vec).collect();
        let mut crashes = 0;
        while let Some(mut part) = parts.pop() {
            if crashes > 0 && (crashes >= CRASHES || Instant::now() >= end) {
                part.iter().for_each(|one| found(one, Found::Crashed));
                continue;
            }
            match self.ask(walk, mount, &part).await {
                Asked::Told(all) => part.iter().zip(all).for_each(|(one, what)| found(one, what)),
                Asked::NoTurn => part.iter().for_each(|one| found(one, UNASKED)),
                Asked::Crashed { .. } if part.len() == 1 => {
                    crashes += 1;
                    part.iter().for_each(|one| found(one, Found::Crashed));
                }
                Asked::Crashed { .. } => {
                    crashes += 1;
                    let rest = part.split_off(part.len() / 2);
                    parts.extend([rest, part]);
                }
            }
        }
    }

    /// Asks the provider for revisions.
    async fn ask(&self, walk: &Walk, mount: &Arc<Mount>, due: &[Due]) -> Asked {
        let references = due.iter().map(|one| one.reference.clone()).collect();
        match self.revisions(walk, mount, references).await {
            Ok(revisions) => {
                let each = revisions.iter().map(|one| match one {
                    Ok(revision) => Found::Seen(hash_of(revision)),
                    Err(ReadError::NotFound) => Found::Seen(Seen::Gone),
                    Err(_) => Found::Nothing { is_answered: true },
                });
                Asked::Told(each.collect())
            }
            Err(error) if is_crash(&error) => Asked::Crashed { at_limit: error.limit().is_some() },
            Err(_) => Asked::NoTurn,
        }
    }

    /// Reads each of them. A watcher whose reads crash again and again loses its turn until the next look.
    async fn look_by_reading(
        &self,
        walk: &Walk,
        mount: &Arc<Mount>,
        due: Vec<Due>,
        mut found: impl FnMut(&Due, Found),
    ) {
        let (known, others): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|one| one.is_known);
        let mut crashes: HashMap<u64, usize> = HashMap::new();
        let mut end = None;
        for one in in_turns(known).into_iter().chain(in_turns(others)) {
            let crashed = crashes.entry(one.watcher).or_default();
            let is_over = end.is_some_and(|end| Instant::now() >= end);
            if Guard::Suspects.is_on() && (*crashed >= CRASHED_READS || (is_over && !one.is_known)) {
                continue;
            }
            let operation = Operation::Read { reference: one.reference.clone() };
            let (answer, mut bill) = self.call_in(walk, mount, &operation, None).await;
            let read = match answer {
                Ok(Answer::Reading(reading)) => bill.charge(answers::size(&reading), || {
                    check::reading(reading, &one.reference, mount, &self.catalog.snapshot())
                }),
                Ok(_) => Err(Answer::to_another()),
                Err(error) => Err(error),
            };
            let what = match read {
                Ok(reading) => Found::Seen(hash_of_contents(&reading)),
                Err(ReadError::NotFound) => Found::Seen(Seen::Gone),
                Err(error) if is_crash(&error) => {
                    *crashed += 1;
                    end.get_or_insert_with(|| Instant::now() + HUNT);
                    Found::Crashed
                }
                Err(error) => Found::Nothing { is_answered: !matches!(error, ReadError::Busy(_)) },
            };
            found(&one, what);
        }
    }
}
