//! `[trust]`: who may sign the components that belljar fetches.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::text;

/// `[trust]`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub(super) struct TrustTable {
    /// A file with the certificates and keys of a Sigstore instance (`trusted_root.json`). Without it: the public instance.
    #[schemars(example = "trusted_root.json")]
    root: Option<PathBuf>,
    /// What happens to a mount whose publisher revoked its version. "warn": it is served, with a warning. "stop": it is in
    /// quarantine.
    #[serde(default)]
    #[schemars(example = &"stop")]
    revoked: OnRevoked,
    /// Who may sign what. For a source of no entry, `belljar add` shows the signer and asks.
    #[serde(default)]
    signers: Vec<SignerTable>,
}

/// An entry of `[[trust.signers]]`. It has an identity with its issuer, or a key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
struct SignerTable {
    /// What the signer may sign: a registry, a namespace or a repository; for a file, the host and path of its URL.
    #[schemars(example = "ghcr.io/acme")]
    from: String,
    /// The identity in the certificate: an email address or the URL of a workflow. "*" stands for any characters.
    #[schemars(example = "https://github.com/acme/*/.github/workflows/release.yml@refs/tags/*")]
    identity: Option<String>,
    /// Who confirms the identity.
    #[schemars(example = "https://token.actions.githubusercontent.com")]
    issuer: Option<String>,
    /// A file with a public key in PEM.
    #[schemars(example = "acme.pub")]
    key: Option<PathBuf>,
    /// A public key of minisign, for a file: the last line of "minisign.pub".
    #[schemars(example = &"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3")]
    minisign: Option<String>,
}

/// What happens to a mount whose publisher revoked its version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "\"warn\" or \"stop\"")]
#[schemars(inline)]
pub enum OnRevoked {
    /// It is served, with a warning.
    #[default]
    Warn,
    /// It is in quarantine.
    Stop,
}

/// The checked `[trust]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustConfig {
    /// The file with the certificates and keys of a Sigstore instance. `None`: the public one.
    pub root: Option<PathBuf>,
    /// What happens to a mount whose publisher revoked its version.
    pub revoked: OnRevoked,
    /// Who may sign what.
    pub signers: Vec<SignerConfig>,
}

/// An entry of `[[trust.signers]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignerConfig {
    /// What it may sign.
    pub from: String,
    /// The signer.
    pub signer: TrustedSigner,
}

/// How a signer is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedSigner {
    /// By an identity, confirmed by an issuer.
    Identity {
        /// The identity, with "*" for any characters.
        identity: String,
        /// The issuer.
        issuer: String,
    },
    /// By a public key, in a file.
    Key(PathBuf),
    /// By a public key of minisign.
    Minisign(String),
}

/// Why an entry of `[[trust.signers]]` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("trust.signers, entry {number}: {problem}")]
pub struct SignerProblem {
    /// The number of the entry. The first is 1.
    number: usize,
    problem: &'static str,
}

/// The scope is empty, or has a scheme.
const FROM: &str =
    "from = \"...\": expected a registry, a namespace or a repository without \"https://\", such as \"ghcr.io/acme\"";

/// The entry has no signer, or two.
const ONE: &str = "expected one signer: an identity and its issuer, or a key, or a minisign key";

/// Anybody can have any identity at some issuer.
const ISSUER: &str =
    "an identity needs its issuer; add, for example  issuer = \"https://token.actions.githubusercontent.com\"";

/// A pattern that fits everybody trusts everybody.
const ANYBODY: &str = "identity = \"*\" trusts everybody; name an identity";

impl TrustTable {
    /// The checked table. `place` makes a path absolute.
    ///
    /// # Errors
    /// The first entry that cannot be used.
    pub(super) fn checked(self, place: impl Fn(PathBuf) -> PathBuf) -> Result<TrustConfig, SignerProblem> {
        let Self { root, revoked, signers } = self;
        let checked = |(at, table): (usize, SignerTable)| {
            let problem = |problem| SignerProblem { number: at + 1, problem };
            let SignerTable { from, identity, issuer, key, minisign } = table;
            let from = from.strip_prefix("oci://").unwrap_or(&from).trim_end_matches('/').to_owned();
            if from.is_empty() || from.contains("://") || !text::is_clean(&from, 300) {
                return Err(problem(FROM));
            }
            let signer = match (identity, issuer, key, minisign) {
                (Some(_), None, None, None) => return Err(problem(ISSUER)),
                (Some(identity), Some(_), None, None) if identity.chars().all(|letter| letter == '*') => {
                    return Err(problem(ANYBODY));
                }
                (Some(identity), Some(issuer), None, None) => TrustedSigner::Identity { identity, issuer },
                (None, None, Some(key), None) => TrustedSigner::Key(place(key)),
                (None, None, None, Some(minisign)) => TrustedSigner::Minisign(minisign),
                _ => return Err(problem(ONE)),
            };
            Ok(SignerConfig { from, signer })
        };
        let signers = signers.into_iter().enumerate().map(checked).collect::<Result<_, _>>()?;
        Ok(TrustConfig { root: root.map(place), revoked, signers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(entry: &str) -> Result<TrustConfig, SignerProblem> {
        let table: TrustTable = toml::from_str(&format!("[[signers]]\n{entry}")).unwrap();
        table.checked(|path| PathBuf::from("/base").join(path))
    }

    #[test]
    fn an_entry_has_one_signer() {
        let key = checked("from = 'oci://ghcr.io/acme/'\nkey = 'acme.pub'").unwrap();
        let signer = TrustedSigner::Key("/base/acme.pub".into());
        assert_eq!(key.signers, [SignerConfig { from: "ghcr.io/acme".to_owned(), signer }]);
        let identity = checked("from = 'ghcr.io'\nidentity = 'ana@acme.example'\nissuer = 'https://i'").unwrap();
        assert!(matches!(&identity.signers[0].signer, TrustedSigner::Identity { issuer, .. } if issuer == "https://i"));
        for (entry, why) in [
            ("from = ''\nkey = 'k'", FROM),
            ("from = 'https://ghcr.io'\nkey = 'k'", FROM),
            ("from = 'ghcr.io'", ONE),
            ("from = 'ghcr.io'\nissuer = 'https://i'", ONE),
            ("from = 'ghcr.io'\nkey = 'k'\nminisign = 'm'", ONE),
            ("from = 'ghcr.io'\nkey = 'k'\nidentity = 'a'\nissuer = 'https://i'", ONE),
            ("from = 'ghcr.io'\nidentity = 'a'", ISSUER),
            ("from = 'ghcr.io'\nidentity = '**'\nissuer = 'https://i'", ANYBODY),
        ] {
            assert_eq!(checked(entry).unwrap_err().to_string(), format!("trust.signers, entry 1: {why}"), "{entry}");
        }
    }
}
