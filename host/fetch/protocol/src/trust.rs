//! Which signers are trusted for which sources.

use serde::{Deserialize, Serialize};

/// The rules of trust for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// What a source must have.
    #[serde(default)]
    pub required: Required,
    /// The rules. A rule applies to the sources below its scope.
    #[serde(default)]
    pub rules: Vec<TrustRule>,
}

/// What a source must have to be accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Required {
    /// A signature of a signer that a rule names.
    Rule,
    /// A valid signature. If rules apply to the source, one of them must name the signer. If none applies, the signer is
    /// reported with [`crate::Standing::NoRule`], and belljar asks its operator.
    #[default]
    Signature,
    /// Nothing: `--unsigned`. Signatures are still checked and reported.
    Nothing,
}

/// One signer that is trusted for the sources below a scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRule {
    /// A registry (`ghcr.io`), a namespace (`ghcr.io/acme`), or a repository; for files, the host and path of the URL without
    /// `https://`. A scope ends at a `/`: `ghcr.io/acme` is no scope of `ghcr.io/acme-evil/tides`.
    pub scope: String,
    /// The signer.
    pub signer: Signer,
}

/// A signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", deny_unknown_fields)]
pub enum Signer {
    /// A Sigstore certificate that names an identity, confirmed by an issuer.
    Keyless {
        /// The identity in the certificate: an email address, or the URL of a workflow.
        identity: Identity,
        /// The URL of the issuer, such as `https://token.actions.githubusercontent.com`.
        issuer: String,
        /// The authorities and logs that are believed.
        #[serde(default)]
        root: Root,
    },
    /// A public key, for signatures that cosign makes with `--key`.
    Key {
        /// The key in PEM (`-----BEGIN PUBLIC KEY-----`).
        pem: String,
        /// The logs that are believed, one of which must list the signature. `None`: no log is asked for.
        #[serde(default)]
        root: Option<Root>,
    },
    /// A minisign key, for files from an HTTPS URL.
    Minisign {
        /// The key: the last line of the file `minisign.pub`.
        key: String,
    },
}

/// The identity of a keyless signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// The whole identity.
    Exact(String),
    /// A regular expression, which must match the whole identity.
    Regex(String),
}

/// Where the certificates and log keys come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Root {
    /// The public instance of Sigstore, as this program was built with it.
    #[default]
    PublicGood,
    /// The text of a Sigstore trusted root (`trusted_root.json`).
    Given(String),
}
