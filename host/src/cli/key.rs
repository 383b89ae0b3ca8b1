//! `belljar key`: makes, lists and revokes API keys. Only `new` ever has a key; the keys file has hashes.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{output, table};
use crate::auth::api_key::ApiKey;
use crate::auth::key_entry::{self, KeyEntry, KeyName, KeyTime, KeyTimeError};
use crate::auth::keys_file;
use crate::config::Config;
use crate::model::{command, text};
use crate::policy::KeyIdentity;
use crate::server::api_keys::{self, ApiKeysError};
use crate::server::configuration::ConfigurationError;
use crate::server::failure::Failure;
use crate::server::location::{self, LocationArgs};
use crate::server::{log, server_status};

/// The widest aligned column, in characters. Longer texts are not aligned.
const MAX_COLUMN: usize = 40;

/// The verbs of `belljar key`.
#[derive(Subcommand)]
pub(super) enum KeyVerb {
    /// Make an API key: print it once, on standard output, and store its hash.
    #[command(
        after_help = "Examples:\n  belljar key new ci --scope notes:read --expires 90d\n  belljar key new ana --group oncall --group berlin --expires never > ana.key\n\nClients send the key in the header  Authorization: Bearer KEY. A key is bj_ and 49 letters and digits;\nsecret scanners find it by the regular expression  \\bbj_[0-9A-Za-z]{49}\\b"
    )]
    New {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the key, for rules, the record and "belljar key revoke": letters, digits, "-", "_", "." and "@".
        #[arg(value_name = "NAME")]
        name: String,
        /// A scope of the key. May be given several times.
        #[arg(long = "scope", value_name = "SCOPE")]
        scopes: Vec<String>,
        /// A group of the key. May be given several times.
        #[arg(long = "group", value_name = "GROUP")]
        groups: Vec<String>,
        /// How long the key is valid: a time such as 90d or 12h, or "never".
        #[arg(long, value_name = "TIME", default_value = "90d")]
        expires: Expiry,
        #[command(flatten)]
        file: KeysFileFlag,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the API keys: names, scopes, groups and times. The keys themselves are stored nowhere.
    #[command(after_help = "Example:\n  belljar key list --json")]
    List {
        #[command(flatten)]
        at: LocationArgs,
        #[command(flatten)]
        file: KeysFileFlag,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Revoke an API key. Running servers refuse it from the next request on.
    #[command(after_help = "Example:\n  belljar key revoke ci")]
    Revoke {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the key.
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        file: KeysFileFlag,
    },
}

impl KeyVerb {
    /// The location arguments.
    pub(super) fn location(&mut self) -> &mut LocationArgs {
        match self {
            Self::New { at, .. } | Self::List { at, .. } | Self::Revoke { at, .. } => at,
        }
    }
}

/// The flag `--keys`.
#[derive(Args)]
pub(super) struct KeysFileFlag {
    /// The keys file (default: that of the configuration, "keys.toml" beside it). The configuration is not read then.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
}

/// How long a new key is valid.
#[derive(Clone, Copy)]
pub(super) enum Expiry {
    Never,
    After(Duration),
}

/// The text is not a time for which a key can be valid.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected a time such as 90d or 12h, or \"never\"")]
pub(super) struct ExpiryError;

impl FromStr for Expiry {
    type Err = ExpiryError;

    fn from_str(text: &str) -> Result<Self, ExpiryError> {
        match text {
            "never" => Ok(Self::Never),
            time => match humantime::parse_duration(time) {
                Ok(time) if time >= Duration::from_secs(1) => Ok(Self::After(time)),
                _ => Err(ExpiryError),
            },
        }
    }
}

/// The keys file, and the configuration that it belongs to.
struct KeysLocation {
    file: PathBuf,
    /// The configuration and its path. `None` with `--keys`.
    config: Option<(PathBuf, Config)>,
}

impl KeysLocation {
    fn find(at: &LocationArgs, flag: KeysFileFlag) -> Result<Self, Failure> {
        if let Some(file) = flag.keys {
            return Ok(Self { file, config: None });
        }
        let (path, input) = location::read_config_input(at)?;
        if input.file.is_none() && at.config.is_some() && !at.is_config_optional {
            return Err(ConfigurationError::Absent(path).into());
        }
        let config = Config::read(input)?;
        Ok(Self { file: config.api_keys.clone(), config: Some((path, config)) })
    }

    /// What the change to `text` means for running servers.
    fn effect(&self, text: &str) -> String {
        match &self.config {
            None => String::new(),
            Some((path, Config { auth: None, .. })) => format!(
                "No server uses these keys yet: add the table  [auth]  to \"{}\", and start belljar with --http.\n",
                path.display()
            ),
            Some((path, config)) => server_status::await_api_keys(&config.state, path, text),
        }
    }
}

pub(super) fn run(verb: KeyVerb) -> Result<ExitCode, Failure> {
    log::start("warn");
    match verb {
        KeyVerb::New { at, name, scopes, groups, expires, file, json } => {
            let name = KeyName::new(&name).map_err(Failure::misused)?;
            if let Some(list) = scopes.iter().chain(&groups).find(|word| word.contains(',')) {
                let list = text::excerpt(list, 80);
                return Err(Failure::Misused(format!(
                    "\"{list}\" has a comma, so it would be one name; give --scope or --group once for each"
                )));
            }
            key_entry::check_scopes(&scopes).map_err(Failure::misused)?;
            key_entry::check_groups(&groups).map_err(Failure::misused)?;
            let identity = KeyIdentity { name: name.as_str().to_owned(), groups, scopes };
            new(&KeysLocation::find(&at, file)?, identity, expires, json)
        }
        KeyVerb::List { at, file, json } => list(&KeysLocation::find(&at, file)?.file, json),
        KeyVerb::Revoke { at, name, file } => {
            let name = KeyName::new(&name).map_err(Failure::misused)?;
            revoke(&KeysLocation::find(&at, file)?, &name)
        }
    }
}

fn new(location: &KeysLocation, identity: KeyIdentity, expires: Expiry, as_json: bool) -> Result<ExitCode, Failure> {
    let key = ApiKey::generate().map_err(ApiKeysError::from)?;
    let now = SystemTime::now();
    let expires = match expires {
        Expiry::Never => None,
        Expiry::After(time) => {
            let end = now.checked_add(time).ok_or(KeyTimeError).and_then(KeyTime::new);
            Some(end.map_err(Failure::misused)?)
        }
    };
    let created = Some(KeyTime::new(now).map_err(Failure::misused)?);
    let entry = KeyEntry { identity, hash: key.hash(), created, expires };
    let text = api_keys::change(&location.file, |text| keys_file::add(text, &entry))?;
    // Standard output has the key and nothing else, so that it can go into a file or a pipe.
    let until = entry.expires.map_or("It never expires.".to_owned(), |time| format!("It expires at {time}."));
    let name = &entry.identity.name;
    output::message(
        true,
        &format!(
            "The key \"{name}\" is stored as its hash in \"{}\". {until}\nThe key itself is shown only now:\n",
            location.file.display()
        ),
    )?;
    let shown = match as_json {
        false => format!("{}\n", key.reveal()),
        true => {
            let mut one = to_json(&entry, now);
            one.as_object_mut().into_iter().for_each(|one| {
                one.insert("key".to_owned(), key.reveal().into());
                one.insert("file".to_owned(), location.file.display().to_string().into());
            });
            format!("{one:#}\n")
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(shown.as_bytes()).and_then(|()| out.flush()).map_err(|error| {
        let cure = command::line(["key", "revoke", name]);
        ApiKeysError::Unprinted { error, cure }
    })?;
    output::message(true, &location.effect(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(location: &KeysLocation, name: &KeyName) -> Result<ExitCode, Failure> {
    let text = api_keys::change(&location.file, |text| keys_file::remove(text, name))?;
    output::print(&format!("The key \"{name}\" is revoked.\n"))?;
    output::print(&location.effect(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn list(file: &Path, as_json: bool) -> Result<ExitCode, Failure> {
    let text = api_keys::read_text(file)?;
    let keys = api_keys::parse(file, text.as_deref())?;
    let now = SystemTime::now();
    if as_json {
        let all: Vec<Value> = keys.entries().into_iter().map(|entry| to_json(entry, now)).collect();
        output::print_json(&json!({ "file": file, "keys": all }))?;
    } else if keys.entries().is_empty() {
        let cure = command::line(["key", "new", "NAME"]);
        output::print(&format!("there are no API keys in \"{}\"; to make one, run: {cure}\n", file.display()))?;
    } else {
        table::print(&to_text(&keys.entries(), now))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each key, in aligned columns.
fn to_text(entries: &[&KeyEntry], now: SystemTime) -> String {
    let names: Vec<&str> = entries.iter().map(|entry| entry.identity.name.as_str()).collect();
    let words = |words: &[String]| if words.is_empty() { "-".to_owned() } else { words.join(" ") };
    let scopes: Vec<String> = entries.iter().map(|entry| words(&entry.identity.scopes)).collect();
    let groups: Vec<String> = entries
        .iter()
        .map(|entry| if entry.identity.groups.is_empty() { "-".to_owned() } else { entry.identity.groups.join(", ") })
        .collect();
    let widths =
        [table::width(&names, MAX_COLUMN), table::width(&scopes, MAX_COLUMN), table::width(&groups, MAX_COLUMN)];
    let [name_width, scope_width, group_width] = widths;
    let mut out = String::new();
    for (((entry, name), scopes), groups) in entries.iter().zip(names).zip(&scopes).zip(&groups) {
        let hash = table::styled(table::FAINT, format!("sha256:{}", entry.hash.short()));
        let until = match entry.expires {
            None => "never expires".to_owned(),
            Some(time) if entry.is_expired(now) => table::styled(table::BAD, format!("expired at {time}")),
            Some(time) => format!("expires at {time}"),
        };
        let name = table::padded(table::NAME, name, name_width);
        out += &format!("{name}  {hash}  scopes {scopes:scope_width$}  groups {groups:group_width$}  {until}\n");
    }
    out
}

fn to_json(entry: &KeyEntry, now: SystemTime) -> Value {
    let KeyIdentity { name, groups, scopes } = &entry.identity;
    json!({
        "name": name, "sha256": entry.hash.to_string(), "scopes": scopes, "groups": groups,
        "created": entry.created.map(|time| time.to_string()), "expires": entry.expires.map(|time| time.to_string()),
        "expired": entry.is_expired(now),
    })
}
