//! The signed samples, which `tests/signed/make.mjs` made.

use std::path::PathBuf;

use belljar_fetch_protocol::{Identity, Required, Root, Signer, Trust, TrustRule};

/// The identity of the good signer.
pub(crate) const IDENTITY: &str = "https://github.com/acme/tides/.github/workflows/release.yml@refs/tags/v1.2.0";

/// The issuer of the good signer.
pub(crate) const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// The bytes of a sample.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/signed/samples").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a sample.
pub(crate) fn text(name: &str) -> String {
    String::from_utf8(sample(name)).unwrap()
}

/// The digest of bytes, as registries write it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let found = ring::digest::digest(&ring::digest::SHA256, bytes);
    let hex: String = found.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// The root of the samples.
pub(crate) fn root() -> Root {
    Root::Given(text("trusted_root.json"))
}

/// A rule for all sources of loopback registries.
pub(crate) fn rule(port: u16, signer: Signer) -> TrustRule {
    TrustRule { scope: format!("127.0.0.1:{port}/acme"), signer }
}

/// The good signer.
pub(crate) fn keyless() -> Signer {
    Signer::Keyless { identity: Identity::Exact(IDENTITY.to_owned()), issuer: ISSUER.to_owned(), root: root() }
}

/// Trust in this signer alone.
pub(crate) fn trust(port: u16, signer: Signer) -> Trust {
    Trust { required: Required::Rule, rules: vec![rule(port, signer)] }
}

/// No trust, and no signature is required.
pub(crate) fn unsigned() -> Trust {
    Trust { required: Required::Nothing, rules: Vec::new() }
}
