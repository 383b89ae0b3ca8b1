//! The helper process outside the second wall. Every `serve` starts it before the wall is raised. It takes five
//! requests:
//!
//! - save a lasting consent in the configuration, as `belljar grant` would;
//! - read the configuration, the lock, the secrets and the key sets again, and return them as plain data;
//! - read the file of API keys again. It contains no key, only hashes;
//! - read the files of TLS again;
//! - open the operator's file of the record again.
//!
//! The helper has a wall of its own. It can read the directories of the configuration, the lock, the components, the
//! secrets, the API keys, the files of TLS and the record, and write into the first two and the last one. It cannot start a program or open a
//! connection, and other processes cannot read its memory.
//!
//! Code that breaks out of a sandbox can send only these requests. They return only data that the host already has, and a
//! file that can only be appended to.

mod error;
mod lent_file;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::api_keys;
use super::candidate::Candidate;
use super::configuration::{policy_text, read_key_sets, set_policies};
use super::edit::{self, ConfigChange};
use super::location::{LocationArgs, read_config_input};
use super::pins::{self, Pinning};
use super::record::audit_file;
use super::tls_files::{self, TlsTexts};
use super::{directories, landlock, log, open_files};
use crate::config::lock::{Lock, Pins};
use crate::config::serve::TlsFiles;
use crate::config::{Ask, Audit, AuthConfig, Config, ConfigInput, KeySetFiles, Wall};
use crate::gateway::consent::{ConsentWriter, PersistError};
use crate::grants::GrantKind;
use crate::grants::secrets::{PlainSecrets, SecretSource, Secrets};
use crate::model::{Consent, Digest, MountName, text};
pub(crate) use error::{HelperError, HelperStartError, OperatorFilesError};
use error::{PersistConsentError, ReadFilesError};

/// The internal verb that the child process runs.
pub(crate) const VERB: &str = "outside";

/// How often a change is tried again after another process changed the configuration.
const MAX_TRIES: usize = 5;

/// A request to the helper: one line of JSON.
#[derive(Serialize, Deserialize)]
enum HelperRequest {
    /// Saves a consent: mount, digest, kind of grant, granted thing. The response is null or an error message.
    PersistConsent(String, String, String, String),
    /// Reads the operator's files. The response is [`OperatorFiles`] or an error message.
    ReadFiles { dev: bool },
    /// Reads the file of API keys. The response is its text, null if there is no file, or an error message.
    ReadApiKeys,
    /// Reads the files of TLS. The response is their texts, or an error message.
    ReadTls,
    /// Opens the operator's file of the record. The response is null, and the file comes over standard input; or an error
    /// message.
    OpenRecord,
}

/// The current contents of the operator's files.
#[derive(Serialize, Deserialize)]
pub(crate) struct OperatorFiles {
    /// The text of the configuration; `None` if there is no file.
    text: Option<String>,
    pins: PlainPins,
    secrets: PlainSecrets,
    key_sets: KeySetFiles,
    /// The text of the file of policies, if there is one.
    policies: Option<String>,
}

/// [`Pins`] as plain data.
#[derive(Serialize, Deserialize)]
enum PlainPins {
    On { lock: String, unwritten: Option<String> },
    Broken(String),
    Off,
}

impl OperatorFiles {
    /// The text of the configuration; `None` if there is no file.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The checked configuration. `input` is the input of [`Config::read`] without the text.
    ///
    /// # Errors
    /// If the configuration is invalid or the lock is damaged.
    pub(crate) fn into_config(self, path: &Path, input: &ConfigInput) -> Result<Config, OperatorFilesError> {
        let file = self.text.map(|text| (path.to_owned(), text));
        let mut config = Config::read(ConfigInput { file, ..input.clone() })?;
        config.pins = match self.pins {
            PlainPins::On { lock, unwritten } => Pins::On { lock: Lock::parse(&lock)?, unwritten },
            PlainPins::Broken(why) => Pins::Broken(why),
            PlainPins::Off => Pins::Off,
        };
        config.ambient.secrets = Secrets::from_plain(self.secrets);
        config.key_sets = self.key_sets;
        set_policies(&mut config, self.policies.as_deref())?;
        Ok(config)
    }
}

/// The helper process. It ends when this is dropped, because that closes its input.
pub(crate) struct PrivilegedHelper {
    /// The standard input of the helper, a socket, and its standard output.
    pipe: Mutex<(UnixStream, BufReader<ChildStdout>)>,
    _child: Child,
}

/// Starts the helper if `config` lets any mount ask for a lasting consent.
///
/// # Errors
/// If the process cannot be started.
pub(crate) fn start_for_consents(
    at: &LocationArgs,
    config: &Config,
) -> Result<Option<Arc<dyn ConsentWriter>>, HelperStartError> {
    if !config.mounts.values().any(|mount| mount.ask == Ask::Persist) {
        return Ok(None);
    }
    Ok(Some(Arc::new(PrivilegedHelper::start(at)?)))
}

impl PrivilegedHelper {
    /// Starts the process.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub(crate) fn start(at: &LocationArgs) -> Result<Self, HelperStartError> {
        #[expect(clippy::disallowed_methods, reason = "this program, as the helper process")]
        let mut command = Command::new("/proc/self/exe");
        // A process group of its own, so that Ctrl-C does not end the helper before this process, which closes its
        // input.
        let (input, inherited) = UnixStream::pair()?;
        command.arg(VERB).stdin(OwnedFd::from(inherited)).stdout(Stdio::piped()).process_group(0);
        for (flag, path) in [("--plugins", &at.plugins), ("--config", &at.config)] {
            if let Some(path) = path {
                command.arg(flag).arg(path);
            }
        }
        let mut child = command.spawn()?;
        open_files::restore_for(Some(child.id()));
        // Closes this process's copy of the helper's end.
        drop(command);
        let output = child.stdout.take().ok_or(HelperStartError::NoPipe)?;
        Ok(Self { pipe: Mutex::new((input, BufReader::new(output))), _child: child })
    }

    /// Sends a request, and waits for its response.
    fn request<T: DeserializeOwned>(&self, request: &HelperRequest) -> Result<T, HelperError> {
        self.exchange(&mut self.pipe.lock().unwrap_or_else(PoisonError::into_inner), request)
    }

    fn exchange<T: DeserializeOwned>(
        &self,
        (input, output): &mut (UnixStream, BufReader<ChildStdout>),
        request: &HelperRequest,
    ) -> Result<T, HelperError> {
        let mut answer = Zeroizing::new(String::new());
        let line = serde_json::to_string(request).map_err(io::Error::from)?;
        writeln!(input, "{line}").and_then(|()| input.flush())?;
        output.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer).map_err(io::Error::from)?)
    }

    /// Reads the operator's files again, and writes missing pins, as at the start.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(crate) fn read_files(&self, dev: bool) -> Result<OperatorFiles, HelperError> {
        self.request::<Result<OperatorFiles, String>>(&HelperRequest::ReadFiles { dev })?.map_err(HelperError::Refused)
    }

    /// Reads the file of API keys that the configuration named at the start. `None` if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read, or other users can change it.
    pub(crate) fn read_api_keys(&self) -> Result<Option<String>, HelperError> {
        self.request::<Result<Option<String>, String>>(&HelperRequest::ReadApiKeys)?.map_err(HelperError::Refused)
    }

    /// Reads the files of TLS that the configuration named at the start.
    ///
    /// # Errors
    /// Names the file that cannot be read.
    pub(crate) fn read_tls(&self) -> Result<TlsTexts, HelperError> {
        self.request::<Result<TlsTexts, String>>(&HelperRequest::ReadTls)?.map_err(HelperError::Refused)
    }
}

impl PrivilegedHelper {
    /// Opens the operator's file of the record again, at the path that the configuration named at the start.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub(crate) fn open_record(&self) -> Result<File, HelperError> {
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        let failure: Option<String> = self.exchange(&mut pipe, &HelperRequest::OpenRecord)?;
        match failure {
            Some(why) => Err(HelperError::Refused(why)),
            None => Ok(lent_file::receive(&pipe.0)?),
        }
    }
}

impl ConsentWriter for PrivilegedHelper {
    fn persist(&self, mount: &MountName, digest: &Digest, consent: &Consent) -> Result<(), PersistError> {
        let (grant, what) = (consent.grant.to_string(), consent.target.clone());
        let request = HelperRequest::PersistConsent(mount.to_string(), digest.to_string(), grant, what);
        let failure = self.request::<Option<String>>(&request).map_err(|error| PersistError(error.to_string()))?;
        failure.map_or(Ok(()), |why| Err(PersistError(why)))
    }
}

/// Runs in the child process: reads one request per line, and writes one response per line.
pub(crate) fn child(at: &LocationArgs) -> ExitCode {
    log::start("warn");
    log::start_writer();
    let followed = restrict(at);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let answer = match serde_json::from_str(&line) {
            Ok(HelperRequest::PersistConsent(mount, digest, grant, what)) => serde_json::to_string(
                &persist_consent(at, &mount, &digest, &grant, &what).err().map(|error| error.to_string()),
            ),
            Ok(HelperRequest::ReadFiles { dev }) => {
                serde_json::to_string(&read_files(at, dev).map_err(|error| error.to_string()))
            }
            Ok(HelperRequest::ReadApiKeys) => {
                let text = followed.api_keys.as_deref().map_or(Ok(None), api_keys::read_text);
                serde_json::to_string(&text.map_err(|error| error.to_string()))
            }
            Ok(HelperRequest::ReadTls) => {
                let texts = followed.tls.as_ref().ok_or_else(|| NO_TLS.to_owned());
                let texts = texts.and_then(|files| tls_files::read(files).map_err(|error| error.to_string()));
                serde_json::to_string(&texts)
            }
            Ok(HelperRequest::OpenRecord) => serde_json::to_string(&open_record(followed.record.as_deref()).err()),
            Err(error) => serde_json::to_string(&Some(error.to_string())),
        };
        let answer = Zeroizing::new(answer.unwrap_or_default());
        if writeln!(out, "{}", answer.as_str()).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

/// Opens the file of the record and sends it over standard input. The error is a message.
fn open_record(path: Option<&Path>) -> Result<(), String> {
    let path =
        path.ok_or_else(|| "the configuration named no file of the record when belljar was started".to_owned())?;
    let file = audit_file(path).map_err(|error| format!("\"{}\": {error}", path.display()))?;
    lent_file::send(std::io::stdin(), &file).map_err(|error| error.to_string())
}

/// The answer if the files of TLS are asked for and there are none. Only a bug of belljar leads to it.
const NO_TLS: &str = "the configuration named no files of TLS when belljar was started";

/// The files that are read again one by one, as the configuration named them at the start.
#[derive(Default)]
struct FollowedFiles {
    /// `None` if there is no configuration.
    api_keys: Option<PathBuf>,
    tls: Option<TlsFiles>,
    /// The operator's file of the record.
    record: Option<PathBuf>,
}

/// Restricts this process to the files that the requests need. If a later configuration names files in other
/// directories, the server must be restarted.
fn restrict(at: &LocationArgs) -> FollowedFiles {
    let config = read_config_input(at).ok().and_then(|(path, input)| Some((path, Config::read(input).ok()?)));
    let named = |(_, config): &(PathBuf, Config)| FollowedFiles {
        api_keys: Some(config.api_keys.clone()),
        tls: config.serve.tls.clone(),
        record: match &config.audit {
            Audit::File(path) => Some(path.clone()),
            Audit::State | Audit::Stderr | Audit::Off => None,
        },
    };
    let followed = config.as_ref().map(named).unwrap_or_default();
    let Some((path, config)) = config.filter(|(_, config)| config.wall != Wall::Off) else {
        landlock::drop_privileges_and_hide_memory();
        return followed;
    };
    let directory = |path: &Path| path.parent().map(Path::to_owned);
    // If a path is a link, the helper needs the directory of the link and that of the target.
    let both = |path: &Path| [directory(path), directory(&directories::real(path))];
    let written = [&path, &config.lock].into_iter().chain(&followed.record);
    let write: Vec<PathBuf> = written.flat_map(|path| both(path)).flatten().collect();
    let mut read = vec![config.plugins.clone()];
    for source in config.secrets.values() {
        if let SecretSource::File(path) = source
            && let Ok(path) = config.ambient.absolute(path)
        {
            // The directory and not the file: a secret may be replaced by a new file of the same name.
            read.extend(both(&path).into_iter().flatten());
        }
    }
    if config.auth.is_some() {
        read.extend(both(&config.api_keys).into_iter().flatten());
    }
    for path in config.auth.iter().flat_map(AuthConfig::key_set_files) {
        read.extend(both(path).into_iter().flatten());
    }
    read.extend(both(&config.policy_file).into_iter().flatten());
    let tls = config.serve.tls.iter().flat_map(|files| [&files.cert, &files.key]);
    read.extend(tls.flat_map(|path| both(path)).flatten());
    landlock::raise_for_helper(&read, &write);
    followed
}

fn read_files(at: &LocationArgs, dev: bool) -> Result<OperatorFiles, ReadFilesError> {
    let (_, input) = read_config_input(at)?;
    let text = input.file.as_ref().map(|(_, text)| text.clone());
    let mut config = Config::read(input)?;
    let policies = policy_text(&config)?;
    let pins = if dev {
        PlainPins::Off
    } else {
        pins::apply(&mut config, Pinning::WriteMissing);
        match config.pins {
            Pins::Broken(why) => PlainPins::Broken(why),
            Pins::On { lock, unwritten } => PlainPins::On { lock: lock.to_text(), unwritten },
            Pins::AllowMissing(_) | Pins::Off => return Err(ReadFilesError::Pins),
        }
    };
    let secrets = Secrets::read(&config.secrets, |path| config.ambient.absolute(path)).to_plain();
    let key_sets = read_key_sets(config.auth.as_ref())?;
    Ok(OperatorFiles { text, pins, secrets, key_sets, policies })
}

fn persist_consent(
    at: &LocationArgs,
    mount: &str,
    digest: &str,
    grant: &str,
    what: &str,
) -> Result<(), PersistConsentError> {
    let mount = MountName::new(mount)?;
    let digest: Digest = digest.parse()?;
    let kind = GrantKind::find(grant).ok_or(PersistConsentError::Kind)?;
    for _ in 0..MAX_TRIES {
        let change = ConfigChange::draft(at, |document, _| {
            edit::mount(document, &mount, |table| {
                (kind.grant_permanently)(table, what).map_err(PersistConsentError::from)
            })
        })?;
        if change.old.mounts.get(&mount).is_none_or(|own| own.ask != Ask::Persist) {
            return Err(PersistConsentError::NoLongerAsks(mount));
        }
        let candidate = Candidate::find(&change.new, &mount)?;
        if candidate.digest != digest || candidate.has_changed() {
            return Err(PersistConsentError::Exchanged(mount));
        }
        let write_lock = change.lock_for_writing()?;
        if !change.is_current()? {
            continue;
        }
        // The pin is written before the grant, as in `cli::grant`.
        let mut lock = pins::read(&change.new.lock)?;
        candidate.pin(&mut lock);
        pins::write(&write_lock, &change.new, &lock)?;
        if change.write(&write_lock)? {
            tracing::warn!(mount = %mount, "a person granted {grant} \"{}\" permanently; the grant was added to the configuration", text::excerpt(what, 200));
            return Ok(());
        }
    }
    Err(PersistConsentError::Contended)
}
