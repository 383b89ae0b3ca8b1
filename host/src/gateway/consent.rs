//! Just-in-time consent: what a person may be asked, how often, and which answers count.
//!
//! A call that ends for want of something leaves on its trail what a person could allow. Where the operator lets the mount
//! ask, that becomes a [`Question`], which travels to whoever reads, with a state: the question itself, sealed, and bound
//! to the mount, its bytes, the URI and the caller. The answer comes back with the state and a new call; nothing else
//! of the first one is kept. A state counts once, for five minutes, in the process that gave it, and for as long as the mount
//! is made of the same lines of the configuration.
//!
//! What was allowed for good is in the configuration. Until that is read again, it is remembered here; whatever the
//! configuration then says of the mount takes its place.
//!
//! Knows no MCP: what a question looks like on a wire is `mcp::consent`.

mod ticket;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::audit::Consented;
use crate::catalog::Mount;
use crate::config::Ask;
use crate::model::seal::Seal;
use crate::model::{Caller, Consent, Digest, Guard, MountName, ReadError, Trail, text};

pub use ticket::Ticket;

/// How long an answer may take.
pub const LIFE: Duration = Duration::from_secs(5 * 60);

/// For how long the same thing is not asked again, whatever was answered.
pub const AGAIN: Duration = Duration::from_secs(60);

/// Questions in one request.
pub const ROUNDS: usize = 4;

/// Questions of one mount within [`AGAIN`]: a provider that wants ever new things does not get ever new questions.
const PER_MOUNT: usize = 16;

/// Questions over all mounts within [`AGAIN`]. When there are more, the ordinary denial is given.
const REMEMBERED: usize = 1024;

/// Characters of a URI, an origin or a path that a question shows.
const SHOWN: usize = 300;

/// Hexadecimal digits of a digest that a question shows: enough to compare, few enough to read.
const DIGITS: usize = 12;

/// What is said of a state that was answered.
const USED: &str = "was used already";

/// What goes into the configuration when a person says "always".
pub trait Keeper: Send + Sync {
    /// Grants `consent` to `mount` for good, whose bytes are `digest`. May wait for a disk.
    ///
    /// # Errors
    /// Says why it is not kept; for the operator.
    fn keep(&self, mount: &MountName, digest: &Digest, consent: &Consent) -> Result<(), String>;
}

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// For this read.
    Once,
    /// For good.
    Always,
    /// No.
    Deny,
    /// The question was put away.
    Decline,
    /// The question was closed without an answer.
    Cancel,
}

impl Choice {
    /// One lower-case word, for records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Always => "always",
            Self::Deny => "deny",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// Whether whoever reads can be asked, and what was answered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asking<'a> {
    /// Whether a question can be answered.
    pub can_answer: bool,
    /// The state of a question that came back, and the answer; none, where that did not come with it.
    pub answered: Option<(&'a str, Option<Choice>)>,
}

/// A question that a call ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Who wants it.
    pub mount: MountName,
    /// The bytes that want it.
    pub digest: Digest,
    /// For which read.
    pub uri: String,
    /// What is wanted.
    pub wanted: Consent,
    /// Whether it can be allowed for good.
    pub can_last: bool,
    /// What must come back with the answer.
    pub state: String,
}

/// Who wants what, for which read. All words are ours: of a provider's there is nothing in it but what a reference may
/// hold, and an origin as the parser of grants writes it.
impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mount, digest, uri, wanted, .. } = self;
        let what = match wanted.grant {
            "fs" => "to read the directory that its operator calls",
            _ => "to send requests (GET and HEAD) to",
        };
        let digest: String = digest.hex().chars().take(DIGITS).collect();
        let (wanted, uri) = (text::quoted(&wanted.what, SHOWN), text::quoted(uri, SHOWN));
        write!(
            f,
            "belljar: the provider \"{mount}\" (sha256:{digest}) wants {what} {wanted}, for the read of {uri}. It holds no grant for that. Allow it?"
        )
    }
}

/// One call between questions: what it is given, and what comes of it.
#[derive(Debug, Default)]
pub(super) struct Round {
    given: Vec<Consent>,
    may_ask: bool,
    /// Whether the mount may ask, and whoever reads cannot be asked.
    is_mute: bool,
    /// Whether the call failed for want of what a person could have allowed.
    pub(super) lacks_an_answer: bool,
    answered: Option<(Consent, Choice)>,
    /// What is asked when the call has ended.
    pub(super) question: Option<Question>,
}

/// Who was asked what, and which answers are still to come. One for a process.
pub struct Consents {
    seal: Seal,
    began: Instant,
    memory: Mutex<Memory>,
    keeper: Option<Arc<dyn Keeper>>,
}

#[derive(Default)]
struct Memory {
    last: u64,
    /// What was asked, and when.
    asked: HashMap<(MountName, Consent), Instant>,
    /// The questions that were answered, and when: no answer counts twice.
    used: HashMap<u64, Instant>,
    /// What was allowed for good, and is in a configuration that was not read again since.
    kept: HashMap<Ground, Lasting>,
}

/// What consent rests on: a mount, its bytes, and the number of what is loaded for it.
type Ground = (MountName, Digest, u64);

/// What was allowed for good.
struct Lasting {
    /// How often the configuration had been read by then.
    read: u64,
    consents: Vec<Consent>,
}

fn ground(mount: &Mount) -> Ground {
    let loaded = if Guard::Revoke.is_on() { mount.loaded.id().number() } else { 0 };
    (mount.name.clone(), mount.digest, loaded)
}

impl Lasting {
    fn is_in_force(&self, read: u64) -> bool {
        self.read == read || !Guard::Revoke.is_on()
    }
}

fn forget(what: &mut HashMap<impl std::hash::Hash + Eq, Instant>, now: Instant, after: Duration) {
    what.retain(|_, at| now.saturating_duration_since(*at) < after);
}

fn who(caller: &Caller) -> (String, Option<String>) {
    (caller.transport.to_owned(), caller.client.as_deref().map(str::to_owned))
}

/// Whether a call that ended in `error` may have done so for want of `consent`. A provider that was refused an origin says
/// so in its own way; a directory that is withheld is denied, or not there.
fn explains(consent: &Consent, error: &ReadError) -> bool {
    match error {
        ReadError::Denied { .. } | ReadError::NotFound => true,
        ReadError::Unavailable(_) | ReadError::Down(_) | ReadError::Provider(_) => consent.grant != "fs",
        _ => false,
    }
}

impl Consents {
    /// Seals with `secret`, which must be of this process alone: what was answered is forgotten when it ends. `keeper`: what
    /// keeps an "always"; without one it is not offered.
    pub fn new(secret: &[u8; 32], keeper: Option<Arc<dyn Keeper>>) -> Self {
        let seal = Seal::new("belljar 2026-11 questions v1", secret);
        Self { seal, began: Instant::now(), memory: Mutex::default(), keeper }
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn since(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether the answer that came with `ticket` counts for this read.
    fn check(
        &self,
        ticket: &Ticket,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        now: Instant,
    ) -> Result<(), &'static str> {
        if self.since(now).saturating_sub(ticket.at) >= u64::try_from(LIFE.as_millis()).unwrap_or(u64::MAX) {
            return Err("is older than 5 minutes");
        }
        if !Guard::Consent.is_on() {
            return Ok(());
        }
        if ticket.uri != uri {
            return Err("was given for another read");
        }
        if ticket.caller != who(caller) {
            return Err("was given to another client");
        }
        if ticket.mount != mount.name {
            return Err("was given for another mount");
        }
        if ticket.digest != mount.digest {
            return Err("was given for other bytes of the provider, which were exchanged meanwhile");
        }
        if ticket.loaded != mount.loaded.id().number() && Guard::Revoke.is_on() {
            return Err("was given before what is configured for this mount changed");
        }
        if mount.ask == Ask::Never {
            return Err("was given when this mount could still ask");
        }
        Ok(())
    }

    /// Takes an answer, or begins without one.
    ///
    /// # Errors
    /// [`ReadError::BadState`] when the answer does not count.
    pub(super) async fn begin(
        &self,
        asking: Asking<'_>,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        read: u64,
    ) -> Result<Round, ReadError> {
        let may_ask = asking.can_answer && mount.ask != Ask::Never;
        let is_mute = !asking.can_answer && mount.ask != Ask::Never;
        let begun = Round { may_ask, is_mute, ..Round::default() };
        let (state, choice) = match asking.answered {
            None => return Ok(begun),
            // Nobody is asked again who cannot be asked.
            Some((_, None)) if is_mute => return Ok(begun),
            Some((state, None)) => {
                let question = self.again(state, caller, uri, mount, Instant::now()).map_err(ReadError::BadState)?;
                return Ok(Round { question: Some(question), ..begun });
            }
            Some((state, Some(choice))) => (state, choice),
        };
        let ticket = self.take(state, choice, caller, uri, mount, Instant::now()).map_err(ReadError::BadState)?;
        let Ticket { wanted, mut given, .. } = ticket;
        if choice == Choice::Always {
            self.keep(mount, &wanted, read).await;
        }
        let is_allowed = matches!(choice, Choice::Once | Choice::Always);
        if is_allowed {
            given.push(wanted.clone());
        }
        let shown = text::quoted(&wanted.what, SHOWN);
        tracing::info!(mount = %mount.name, "{} {shown}: answered \"{}\"", wanted.grant, choice.as_str());
        // Who said no to one thing is not asked for the next in the same breath.
        Ok(Round { given, may_ask: may_ask && is_allowed, answered: Some((wanted, choice)), ..begun })
    }

    /// The question that a state belongs to, which is still to be answered.
    fn again(
        &self,
        state: &str,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        now: Instant,
    ) -> Result<Question, &'static str> {
        let ticket = self.open(state)?;
        self.check(&ticket, caller, uri, mount, now)?;
        if self.memory().used.contains_key(&ticket.number) {
            return Err(USED);
        }
        Ok(self.question(ticket, mount, state.to_owned()))
    }

    fn question(&self, ticket: Ticket, mount: &Mount, state: String) -> Question {
        let Ticket { mount: name, digest, uri, wanted, .. } = ticket;
        Question { mount: name, digest, uri, wanted, can_last: self.can_last(mount), state }
    }

    /// Opens, checks and uses up a state.
    fn take(
        &self,
        state: &str,
        choice: Choice,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        now: Instant,
    ) -> Result<Ticket, &'static str> {
        let ticket = self.open(state)?;
        self.check(&ticket, caller, uri, mount, now)?;
        if choice == Choice::Always && !self.can_last(mount) {
            return Err("belongs to a question that did not offer \"always\"");
        }
        let mut memory = self.memory();
        forget(&mut memory.used, now, LIFE);
        if memory.used.insert(ticket.number, now).is_some() && Guard::Consent.is_on() {
            return Err(USED);
        }
        Ok(ticket)
    }

    fn can_last(&self, mount: &Mount) -> bool {
        mount.ask == Ask::Persist && self.keeper.is_some()
    }

    /// Puts what was allowed into the configuration, and gives it to every call of the mount until that is read again. `read`:
    /// how often it was, before anything was written.
    async fn keep(&self, mount: &Mount, consent: &Consent, read: u64) {
        let Some(keeper) = self.keeper.clone() else { return };
        let (name, digest, what) = (mount.name.clone(), mount.digest, consent.clone());
        let kept = tokio::task::spawn_blocking(move || keeper.keep(&name, &digest, &what)).await;
        match kept.unwrap_or_else(|error| Err(error.to_string())) {
            Ok(()) => {
                let mut memory = self.memory();
                memory.kept.retain(|_, kept| kept.is_in_force(read));
                let kept = memory.kept.entry(ground(mount)).or_insert(Lasting { read, consents: Vec::new() });
                if !kept.consents.contains(consent) {
                    kept.consents.push(consent.clone());
                }
            }
            Err(why) => {
                tracing::error!(mount = %mount.name, "\"always\" is taken as \"once\": the configuration cannot be changed: {why}");
            }
        }
    }

    /// Everything that a person allowed for this call. `read`: how often the configuration was read.
    pub(super) fn for_call(&self, mount: &Mount, round: &Round, read: u64) -> Vec<Consent> {
        let mut all = round.given.clone();
        if mount.ask == Ask::Persist
            && let Some(kept) = self.memory().kept.get(&ground(mount))
            && kept.is_in_force(read)
        {
            all.extend(kept.consents.iter().filter(|consent| !round.given.contains(consent)).cloned());
        }
        all
    }

    /// Makes a question of how a call ended, where there is one to ask.
    pub(super) fn ask(
        &self,
        round: &mut Round,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        error: &ReadError,
        trail: &Trail,
    ) {
        self.ask_at(Instant::now(), round, caller, uri, mount, error, trail);
    }

    #[expect(clippy::too_many_arguments, reason = "what a question is about, and the time")]
    fn ask_at(
        &self,
        now: Instant,
        round: &mut Round,
        caller: &Caller,
        uri: &str,
        mount: &Mount,
        error: &ReadError,
        trail: &Trail,
    ) {
        let given = &round.given;
        let missing = || trail.asks().iter().filter(|ask| !given.contains(ask) && explains(ask, error));
        if missing().next().is_none() {
            return;
        }
        round.lacks_an_answer = round.is_mute;
        if !round.may_ask || given.len() >= ROUNDS {
            return;
        }
        let mut memory = self.memory();
        forget(&mut memory.asked, now, AGAIN);
        let is_on = Guard::Asking.is_on();
        let own = memory.asked.keys().filter(|(name, _)| *name == mount.name).count();
        if is_on && (own >= PER_MOUNT || memory.asked.len() >= REMEMBERED) {
            return;
        }
        let is_new = |ask: &&Consent| !memory.asked.contains_key(&(mount.name.clone(), (*ask).clone())) || !is_on;
        let Some(wanted) = missing().find(is_new).cloned() else { return };
        memory.asked.insert((mount.name.clone(), wanted.clone()), now);
        memory.last += 1;
        let ticket = Ticket {
            number: memory.last,
            at: self.since(now),
            mount: mount.name.clone(),
            digest: mount.digest,
            loaded: mount.loaded.id().number(),
            uri: uri.to_owned(),
            caller: who(caller),
            wanted,
            given: given.clone(),
        };
        drop(memory);
        let state = self.seal(&ticket);
        round.question = Some(self.question(ticket, mount, state));
    }
}

impl Round {
    /// For the record of the call.
    pub(super) fn on_record(&self) -> Consented {
        Consented {
            asked: self.question.as_ref().map(|question| question.wanted.clone()),
            answered: self.answered.as_ref().map(|(wanted, choice)| (wanted.clone(), choice.as_str())),
        }
    }
}

#[cfg(test)]
mod tests;
