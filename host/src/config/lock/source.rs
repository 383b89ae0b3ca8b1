//! Where a component was fetched from, and who signed it, as the lock remembers it.

use std::fmt;

use serde::Deserialize;

use super::revocation::LockedRevocation;
use super::written_digest::WrittenDigest;
use crate::model::Digest;

/// Where a component was fetched from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedSource {
    /// The reference without a digest, such as `ghcr.io/acme/tides:1.2`, or the URL of a file.
    pub reference: String,
    /// The digest of the manifest. `None` for a file.
    pub manifest: Option<Digest>,
    /// The version, by the word of the publisher.
    pub version: Option<String>,
    /// Who signed it. `None`: nobody, and the operator allowed that.
    pub signer: Option<LockedSigner>,
    /// Why its publisher revoked this version, as of the last look at the publisher's list. `None`: it did not.
    pub revoked: Option<LockedRevocation>,
}

/// Who signed a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedSigner {
    /// The identity in the certificate, or the digest or number of a key.
    pub name: String,
    /// Who confirmed the identity. `None` for a key.
    pub issuer: Option<String>,
}

impl LockedSigner {
    /// True if `other` is the same signer. A workflow of GitHub signs each release as `REPOSITORY/WORKFLOW@refs/tags/TAG`: the
    /// part after the `@` of a URL is not compared.
    pub fn is_same(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.stem() == other.stem()
    }

    /// The name without the reference of a workflow.
    pub fn stem(&self) -> &str {
        match self.name.split_once("@refs/") {
            Some((stem, _)) if stem.starts_with("https://") && self.issuer.is_some() => stem,
            _ => &self.name,
        }
    }
}

impl fmt::Display for LockedSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.issuer {
            Some(issuer) => write!(f, "{} (by {issuer})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The keys and values, as the lock has them.
impl fmt::Display for LockedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        writeln!(f, "reference = {}", quoted(&self.reference))?;
        let manifest = self.manifest.map(|manifest| manifest.to_string());
        let signer = self.signer.as_ref();
        for (key, value) in [
            ("manifest", manifest.as_deref()),
            ("version", self.version.as_deref()),
            ("signer", signer.map(|signer| signer.name.as_str())),
            ("issuer", signer.and_then(|signer| signer.issuer.as_deref())),
            ("revoked", self.revoked.as_ref().map(|revoked| revoked.reason.as_deref().unwrap_or_default())),
            ("instead", self.revoked.as_ref().and_then(|revoked| revoked.instead.as_deref())),
        ] {
            if let Some(value) = value {
                writeln!(f, "{key} = {}", quoted(value))?;
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenSource {
    reference: String,
    manifest: Option<WrittenDigest>,
    version: Option<String>,
    signer: Option<String>,
    issuer: Option<String>,
    revoked: Option<String>,
    instead: Option<String>,
}

impl From<WrittenSource> for LockedSource {
    fn from(written: WrittenSource) -> Self {
        let WrittenSource { reference, manifest, version, signer, issuer, revoked, instead } = written;
        let signer = signer.map(|name| LockedSigner { name, issuer });
        // An empty reason: the publisher gave none.
        let revoked = revoked
            .map(|reason| LockedRevocation { reason: Some(reason).filter(|reason| !reason.is_empty()), instead });
        Self { reference, manifest: manifest.map(|digest| digest.0), version, signer, revoked }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workflow_is_the_same_signer_in_each_release() {
        let signer =
            |name: &str, issuer: Option<&str>| LockedSigner { name: name.into(), issuer: issuer.map(str::to_owned) };
        let github = Some("https://token.actions.githubusercontent.com");
        let release = |tag: &str| signer(&format!("https://github.com/acme/tides/release.yml@refs/tags/{tag}"), github);
        assert!(release("v1").is_same(&release("v2")));
        for other in [
            signer("https://github.com/acme/tides/release.yml@refs/tags/v1", Some("https://other.example")),
            signer("https://github.com/evil/tides/release.yml@refs/tags/v1", github),
            signer("https://github.com/acme/tides/release.yml", None),
        ] {
            assert!(!release("v1").is_same(&other), "{other}");
        }
        assert!(!signer("ana@refs/x", github).is_same(&signer("ana@refs/y", github)), "no workflow");
        assert!(!signer("sha256:a", None).is_same(&signer("sha256:b", None)));
    }
}
