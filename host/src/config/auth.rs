//! `[auth]`: which credentials HTTP requests may carry, and what their holders may do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::issuer::{self, IssuerConfig, IssuerProblem, IssuerTable};
use super::rules::ScopeTable;
use crate::grants::secrets::SecretSource;

/// The name of the keys file beside the configuration.
pub(super) const KEYS_FILE: &str = "keys.toml";

/// `[auth]`, as it is written.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct AuthTable {
    /// The file of the API keys. `belljar key new` writes it. It contains the SHA-256 of each key, and no key.
    #[schemars(example = "~/belljar-keys.toml")]
    #[schemars(extend("x-taplo" = { "docs": { "defaultValue": "\"keys.toml\", beside this file" } }))]
    pub(super) keys: Option<PathBuf>,
    /// Authorization servers whose access tokens are accepted.
    #[serde(default)]
    pub(super) issuers: Vec<IssuerTable>,
    /// What the holders of a scope may do, by scope. Each entry is a rule like those of [[allow]].
    #[serde(default)]
    pub(super) scopes: BTreeMap<String, ScopeTable>,
}

/// The contents of the files with key sets, by their paths. Read before the second wall hides the files.
pub type KeySetFiles = BTreeMap<PathBuf, String>;

/// `[auth]`. If the configuration has it, each HTTP request needs a valid key or token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthConfig {
    /// The keys file that the configuration names. `None`: `keys.toml` beside the configuration.
    pub keys: Option<PathBuf>,
    /// The issuers of access tokens.
    pub issuers: Vec<IssuerConfig>,
}

impl AuthConfig {
    /// True if belljar cannot start without the keys file: the configuration names it, or no request could be
    /// authenticated otherwise.
    pub fn needs_keys_file(&self) -> bool {
        self.keys.is_some() || self.issuers.is_empty()
    }

    /// The TCP ports to which belljar itself connects.
    pub fn ports(&self) -> Vec<u16> {
        self.issuers.iter().flat_map(IssuerConfig::ports).collect()
    }

    /// The files with key sets.
    pub fn key_set_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.issuers.iter().filter_map(IssuerConfig::key_set_file)
    }
}

impl AuthTable {
    /// The settings. `place` makes a path absolute.
    ///
    /// # Errors
    /// If an issuer is not valid.
    pub(super) fn checked(
        self,
        secrets: &BTreeMap<String, SecretSource>,
        place: impl Fn(PathBuf) -> PathBuf + Copy,
    ) -> Result<AuthConfig, IssuerProblem> {
        let issuers = issuer::check(self.issuers, secrets, place)?;
        Ok(AuthConfig { keys: self.keys.map(place), issuers })
    }
}
