//! `[replicas]`: several belljars behind one address, and the store that they share.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use ipnet::IpNet;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::issuer::known_secrets;
use crate::grants::network::host::{Host, HostError, parse_host_and_port};
use crate::grants::network::networks::networks;
use crate::grants::secrets::{PrincipalPath, SecretSource};
use crate::store::WhenDown;

/// The port of Redis and Valkey, with and without TLS.
const PORT: u16 = 6379;

/// The highest number of a database. Redis has 16 unless it is configured otherwise.
const MAX_DATABASE: u16 = 1023;

/// `[replicas]`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct ReplicasTable {
    /// A file with 64 hexadecimal digits, the same for all replicas. It seals cursors and what the store keeps. The command
    /// `openssl rand -hex 32` makes one.
    #[schemars(example = "replicas.key")]
    key: PathBuf,
    /// The URL of a Redis or Valkey that all replicas share. Without it, each replica counts alone.
    #[schemars(with = "Option<String>", extend("pattern" = "^rediss?://"), example = "rediss://redis.internal:6379/0")]
    store: Option<StoreUrl>,
    /// The name of belljar's user in the store. Without it: the default user.
    #[schemars(example = &"belljar")]
    user: Option<String>,
    /// The name of a secret in [secrets]: belljar's password in the store.
    #[schemars(example = "store-password")]
    password: Option<String>,
    /// What happens to requests with a rate while the store cannot be reached. "local": each replica counts alone.
    /// "refuse": they are refused.
    #[schemars(example = &"refuse")]
    when_down: Option<WhenDown>,
    /// Private addresses and networks in which the store may be. Public addresses, and an address in the URL, need no entry.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(with = "Vec<String>", example = ["10.0.0.0/8"])]
    networks: Vec<IpNet>,
}

/// The checked `[replicas]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicasConfig {
    /// The file of the key that all replicas have.
    pub key: PathBuf,
    /// The store that they share.
    pub store: Option<StoreConfig>,
}

/// The store that replicas share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Where it is.
    pub url: StoreUrl,
    /// The name of belljar's user.
    pub user: Option<String>,
    /// The name of the secret that is belljar's password.
    pub password: Option<String>,
    /// What happens while it cannot be reached.
    pub when_down: WhenDown,
    /// Private networks in which it may be.
    pub networks: Vec<IpNet>,
}

/// Why the keys of `[replicas]` do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicasProblem {
    /// A key about the store, and no store.
    #[error("replicas.{0}: there is no store; add  store = \"redis://HOST:6379\"  to [replicas], or remove  {0}")]
    NoStore(&'static str),
    /// The password is not the name of a secret.
    #[error(
        "replicas.password is not the name of a secret; {0}; to add one, put the password into a file that only belljar can read, add  NAME = {{ file = \"FILE\" }}  to [secrets], and write  password = \"NAME\""
    )]
    UnknownSecret(String),
    /// Each principal has its own secret of this name.
    #[error(
        "replicas.password is the secret \"{0}\", of which each principal has its own; name one that belongs to belljar"
    )]
    PrincipalSecret(String),
    /// A user without a password.
    #[error("replicas.user = \"{0}\": a user has a password; add  password = \"NAME\"  with the name of a secret")]
    NoPassword(String),
}

impl ReplicasTable {
    /// The checked table. `place` makes a path absolute.
    ///
    /// # Errors
    /// The keys do not fit together.
    pub(super) fn checked(
        self,
        secrets: &BTreeMap<String, SecretSource>,
        place: impl Fn(PathBuf) -> PathBuf,
    ) -> Result<ReplicasConfig, ReplicasProblem> {
        let Self { key, store, user, password, when_down, networks } = self;
        let key = place(key);
        let Some(url) = store else {
            let named = [
                ("user", user.is_some()),
                ("password", password.is_some()),
                ("when-down", when_down.is_some()),
                ("networks", !networks.is_empty()),
            ];
            return match named.into_iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => Err(ReplicasProblem::NoStore(name)),
                None => Ok(ReplicasConfig { key, store: None }),
            };
        };
        if let Some(name) = &password {
            match secrets.get(name) {
                None => return Err(ReplicasProblem::UnknownSecret(known_secrets(secrets))),
                Some(SecretSource::File(path)) if matches!(PrincipalPath::find(path), Ok(Some(_))) => {
                    return Err(ReplicasProblem::PrincipalSecret(name.clone()));
                }
                Some(_) => {}
            }
        }
        if let Some(user) = user.as_ref().filter(|_| password.is_none()) {
            return Err(ReplicasProblem::NoPassword(user.clone()));
        }
        let when_down = when_down.unwrap_or_default();
        Ok(ReplicasConfig { key, store: Some(StoreConfig { url, user, password, when_down, networks }) })
    }
}

/// The URL of a store: `redis://HOST:PORT/DATABASE`, or `rediss://` for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// True if the connection is encrypted.
    pub has_tls: bool,
    /// The number of the database.
    pub database: u16,
}

/// Why a text is not the URL of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// The scheme is another one.
    #[error("expected a URL that begins with \"redis://\", or with \"rediss://\" for TLS")]
    Scheme,
    /// It has a user or a password.
    #[error(
        "a password has no place in this file: write it into a file, name the file in [secrets], and add  password = \"NAME\"  to [replicas]"
    )]
    Password,
    /// What follows the host is not the number of a database.
    #[error("after the host comes nothing, or the number of a database from 0 to {MAX_DATABASE}, such as \"/0\"")]
    Database,
    /// The authority is malformed.
    #[error(transparent)]
    Authority(#[from] HostError),
}

impl std::str::FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(written: &str) -> Result<Self, StoreUrlError> {
        let (has_tls, rest) = match written.split_once("://") {
            Some(("redis", rest)) => (false, rest),
            Some(("rediss", rest)) => (true, rest),
            _ => return Err(StoreUrlError::Scheme),
        };
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(StoreUrlError::Password);
        }
        let (host, port) = parse_host_and_port(authority)?;
        let is_number = !database.is_empty() && database.bytes().all(|byte| byte.is_ascii_digit());
        let database = match database {
            "" => 0,
            digits => digits
                .parse()
                .ok()
                .filter(|number| is_number && *number <= MAX_DATABASE)
                .ok_or(StoreUrlError::Database)?,
        };
        Ok(Self { host, port: port.unwrap_or(PORT), has_tls, database })
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.has_tls { "rediss" } else { "redis" };
        write!(f, "{scheme}://{}:{}/{}", self.host, self.port, self.database)
    }
}

impl<'de> Deserialize<'de> for StoreUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for StoreUrl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StoreUrl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^rediss?://" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_stores() {
        for (written, shown) in [
            ("redis://cache", "redis://cache:6379/0"),
            ("redis://cache/", "redis://cache:6379/0"),
            ("rediss://cache.internal:6380/3", "rediss://cache.internal:6380/3"),
            ("redis://[::1]:1/15", "redis://[::1]:1/15"),
        ] {
            assert_eq!(written.parse::<StoreUrl>().unwrap().to_string(), shown, "{written}");
        }
        for (written, error) in [
            ("cache:6379", StoreUrlError::Scheme),
            ("http://cache", StoreUrlError::Scheme),
            ("redis://:secret@cache", StoreUrlError::Password),
            ("redis://user@cache", StoreUrlError::Password),
            ("redis://cache/x", StoreUrlError::Database),
            ("redis://cache/+1", StoreUrlError::Database),
            ("redis://cache/1024", StoreUrlError::Database),
            ("redis://cache/0/1", StoreUrlError::Database),
        ] {
            assert_eq!(written.parse::<StoreUrl>(), Err(error), "{written}");
        }
        assert!("redis://".parse::<StoreUrl>().is_err());
    }

    fn checked(table: &str, secrets: &[(&str, &str)]) -> Result<ReplicasConfig, ReplicasProblem> {
        let table: ReplicasTable = toml::from_str(table).unwrap();
        let secrets =
            secrets.iter().map(|(name, file)| ((*name).to_owned(), SecretSource::File(file.into()))).collect();
        table.checked(&secrets, |path| PathBuf::from("/base").join(path))
    }

    #[test]
    fn keys_about_a_store_need_one() {
        let alone = checked("key = 'k'", &[]).unwrap();
        assert_eq!(alone, ReplicasConfig { key: "/base/k".into(), store: None });
        for (key, value) in
            [("user", "'u'"), ("password", "'p'"), ("when-down", "'refuse'"), ("networks", "['10.0.0.0/8']")]
        {
            let found = checked(&format!("key = 'k'\n{key} = {value}"), &[("p", "p")]);
            assert_eq!(found, Err(ReplicasProblem::NoStore(key)));
        }
    }

    #[test]
    fn the_password_is_the_name_of_a_secret() {
        let table = "key = 'k'\nstore = 'redis://cache'\npassword = 'p'";
        assert!(
            matches!(checked(table, &[("q", "q")]), Err(ReplicasProblem::UnknownSecret(known)) if known.contains("\"q\""))
        );
        assert!(matches!(checked(table, &[("p", "p/{principal}")]), Err(ReplicasProblem::PrincipalSecret(_))));
        let store = checked(table, &[("p", "p")]).unwrap().store.unwrap();
        assert_eq!((store.password.as_deref(), store.when_down), (Some("p"), WhenDown::Local));
        let user = "key = 'k'\nstore = 'redis://cache'\nuser = 'u'";
        assert_eq!(checked(user, &[]), Err(ReplicasProblem::NoPassword("u".to_owned())));
    }
}
