//! The process that stays outside of the second wall: it is started before the wall is raised, by every `serve`, and knows two
//! orders. It writes what a person allows for good into the configuration, as `belljar grant` would; and it reads the
//! configuration, the lock and the secrets again, and hands them over as plain data.
//!
//! It has a wall of its own: it reads where the configuration, the lock, components and secrets lie, writes where the first two
//! lie, starts nothing, connects to nothing, and its memory is out of reach for other processes.
//!
//! Whoever breaks out of a sandbox can give these orders and no others, and learns nothing by them that the host does not
//! hold already: for everything else the configuration lies beyond the wall.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::change::{self, Change};
use super::pins::{self, Pinning};
use super::trust::Candidate;
use super::{Failure, Where, keys, open, open_files, wall};
use crate::config::lock::{Lock, Pins};
use crate::config::{Ask, Config, Given, Wall};
use crate::gateway::consent::Keeper;
use crate::grants::KINDS;
use crate::grants::secrets::{Plain, Secrets, Source};
use crate::model::{Consent, Digest, MountName, command, text};

/// The hidden verb that the child process runs.
pub(super) const VERB: &str = "outside";

/// How often a change is made anew because somebody else was quicker.
const TRIES: usize = 5;

/// What the child process is told, a line each.
#[derive(Serialize, Deserialize)]
enum Order {
    /// Mount, digest, kind of grant, what. The answer is null, or what went wrong.
    Keep(String, String, String, String),
    /// The answer is a [`Reread`], or what went wrong.
    Read { dev: bool },
}

/// What the operator's files say now.
#[derive(Serialize, Deserialize)]
pub(super) struct Reread {
    /// The text of the configuration; none when there is no file.
    text: Option<String>,
    pins: Pinned,
    secrets: Plain,
}

/// What is known of which bytes may use grants, as plain data.
#[derive(Serialize, Deserialize)]
enum Pinned {
    On { lock: String, unwritten: Option<String> },
    Broken(String),
    Off,
}

impl Reread {
    /// The text of the configuration.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether there is no configuration.
    pub(super) fn is_without_text(&self) -> bool {
        self.text.is_none()
    }

    /// The configuration, whole and checked. `given`: all that it is read with, but for its text.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn into_config(self, path: &Path, given: &Given) -> Result<Config, String> {
        let file = self.text.map(|text| (path.to_owned(), text));
        let mut config = Config::read(Given { file, ..given.clone() })?;
        config.pins = match self.pins {
            Pinned::On { lock, unwritten } => Pins::On { lock: Lock::parse(&lock)?, unwritten },
            Pinned::Broken(why) => Pins::Broken(why),
            Pinned::Off => Pins::Off,
        };
        config.ambient.secrets = Secrets::from_plain(self.secrets);
        Ok(config)
    }
}

/// The child process, which ends when this is dropped and its input with it.
pub(super) struct Outside {
    pipe: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    _child: Child,
}

/// Starts the process, where `config` lets any mount ask for something for good.
///
/// # Errors
/// When it cannot be started.
pub(super) fn start_keeper(at: &Where, config: &Config) -> Result<Option<Arc<dyn Keeper>>, Failure> {
    if !config.mounts.values().any(|mount| mount.ask == Ask::Persist) {
        return Ok(None);
    }
    Ok(Some(Arc::new(Outside::start(at)?)))
}

impl Outside {
    /// Starts the process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(at: &Where) -> Result<Self, Failure> {
        #[expect(clippy::disallowed_methods, reason = "our own program, as the process that stays outside of the wall")]
        let mut command = Command::new("/proc/self/exe");
        // A group of its own: what a terminal tells this process is not for that one, which ends with its input.
        command.arg(VERB).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        for (flag, path) in [("--plugins", &at.plugins), ("--config", &at.config)] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        let fail =
            |why: String| Failure::Failed(format!("cannot start the process that stays outside of the wall: {why}"));
        let mut child = command.spawn().map_err(|error| fail(error.to_string()))?;
        open_files::give_back(Some(child.id()));
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("it has no pipes".to_owned()));
        };
        Ok(Self { pipe: Mutex::new((input, BufReader::new(output))), _child: child })
    }

    /// Gives an order, and waits for its answer.
    fn order<T: DeserializeOwned>(&self, order: &Order) -> Result<T, String> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let (input, output) = &mut *pipe;
        let mut answer = Zeroizing::new(String::new());
        let gone = |why: &dyn std::fmt::Display| format!("the process outside of the wall is gone ({why})");
        let line = serde_json::to_string(order).map_err(|error| gone(&error))?;
        writeln!(input, "{line}").and_then(|()| input.flush()).map_err(|error| gone(&error))?;
        output.read_line(&mut answer).map_err(|error| gone(&error))?;
        serde_json::from_str(&answer).map_err(|error| gone(&error))
    }

    /// Has the operator's files read again, and mounts pinned that have no pin yet, as at the start.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(super) fn read_again(&self, dev: bool) -> Result<Reread, String> {
        self.order::<Result<Reread, String>>(&Order::Read { dev })?
    }
}

impl Keeper for Outside {
    fn keep(&self, mount: &MountName, digest: &Digest, consent: &Consent) -> Result<(), String> {
        let order = Order::Keep(mount.to_string(), digest.to_string(), consent.grant.to_owned(), consent.what.clone());
        self.order::<Option<String>>(&order)?.map_or(Ok(()), Err)
    }
}

/// The child process: an order a line, and an answer for each.
pub(super) fn child(at: &Where) -> ExitCode {
    super::log::start("warn");
    super::log::flow();
    give_up(at);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = match serde_json::from_str(&line) {
            Ok(Order::Keep(mount, digest, grant, what)) => {
                serde_json::to_string(&keep(at, &mount, &digest, &grant, &what).err())
            }
            Ok(Order::Read { dev }) => serde_json::to_string(&read_again(at, dev)),
            Err(error) => serde_json::to_string(&Some(error.to_string())),
        };
        let answer = Zeroizing::new(answer.unwrap_or_default());
        if writeln!(out, "{}", answer.as_str()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Gives up what no order needs. What a configuration names later is out of reach if it lies elsewhere: that takes a restart.
fn give_up(at: &Where) {
    let config = open::given(at).ok().and_then(|(path, given)| Some((path, Config::read(given).ok()?)));
    let Some((path, config)) = config.filter(|(_, config)| config.wall != Wall::Off) else {
        return wall::give_up_privately();
    };
    let directory = |path: &Path| path.parent().map(Path::to_owned);
    // Behind links lies what is read and replaced.
    let both = |path: &Path| [directory(path), directory(&keys::real(path))];
    let write: Vec<PathBuf> = [&path, &config.lock].into_iter().flat_map(|path| both(path)).flatten().collect();
    let mut read = vec![config.plugins.clone()];
    for source in config.secrets.values() {
        if let Source::File(path) = source
            && let Ok(path) = config.ambient.absolute(path)
        {
            // A secret is replaced by another file of its name.
            read.extend(both(&path).into_iter().flatten());
        }
    }
    wall::raise_outside(&read, &write);
}

fn read_again(at: &Where, dev: bool) -> Result<Reread, String> {
    let (_, given) = open::given(at).map_err(Failure::why)?;
    let text = given.file.as_ref().map(|(_, text)| text.clone());
    let mut config = Config::read(given)?;
    let pins = if dev {
        Pinned::Off
    } else {
        pins::apply(&mut config, Pinning::Pin);
        match config.pins {
            Pins::Broken(why) => Pinned::Broken(why),
            Pins::On { lock, unwritten } => Pinned::On { lock: lock.to_text(), unwritten },
            Pins::Look(_) | Pins::Off => return Err("pins that were not asked for".to_owned()),
        }
    };
    let secrets = Secrets::read(&config.secrets, &config.ambient).to_plain();
    Ok(Reread { text, pins, secrets })
}

fn keep(at: &Where, mount: &str, digest: &str, grant: &str, what: &str) -> Result<(), String> {
    let mount = MountName::new(mount)?;
    let digest: Digest = digest.parse()?;
    let kind = KINDS.iter().find(|kind| kind.name == grant).ok_or("there is no such kind of grant")?;
    for _ in 0..TRIES {
        let draft = Change::draft(at, |document, _| {
            change::mount(document, &mount, |table| (kind.keep)(table, what).map_err(Failure::Failed))
        });
        let change = draft.map_err(Failure::why)?;
        if change.old.mounts.get(&mount).is_none_or(|own| own.ask != Ask::Persist) {
            return Err(format!("[mounts.{mount}] no longer says  ask = \"persist\""));
        }
        let candidate = Candidate::find(&change.new, &mount).map_err(Failure::why)?;
        if candidate.digest != digest || candidate.has_changed() {
            return Err(format!(
                "the component of \"{mount}\" was exchanged meanwhile; to look at it, run: {}",
                command::line(["trust", mount.as_str()])
            ));
        }
        let turn = change.turn().map_err(Failure::why)?;
        if !change.is_current().map_err(Failure::why)? {
            continue;
        }
        // The pin first, as `grant` does.
        let mut lock = pins::read(&change.new.lock)?;
        candidate.pin(&mut lock);
        pins::write(&turn, &change.new, &lock)?;
        if change.write(&turn).map_err(Failure::why)? {
            tracing::warn!(mount = %mount, "a person allowed {grant} \"{}\" for good; it is in the configuration", text::excerpt(what, 200));
            return Ok(());
        }
    }
    Err("somebody else changes the configuration all the time".to_owned())
}
