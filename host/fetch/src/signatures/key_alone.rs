//! A signature by a key for which no log is asked: cosign makes it with `--key` and without an upload. `sigstore-verify` wants a
//! log or a time stamp in every bundle, so the signature of the statement is checked here.

use sigstore_verify::crypto::{KeyAlgorithm, verify_signature};
use sigstore_verify::types::{Bundle, DerPublicKey, SignatureContent, Statement};

use crate::digest::Sha256;

/// Checks that `key` signed the statement in the bundle, and that the statement names the document `bytes`.
///
/// # Errors
/// The reason, in words.
pub(super) fn verify(bundle: &Bundle, key: &DerPublicKey, bytes: &[u8]) -> Result<(), String> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err("it signs no statement".to_owned());
    };
    let scheme = KeyAlgorithm::from_spki(key).map_err(|error| error.to_string())?.default_signing_scheme();
    let signed = verify_signature(key, &envelope.pae(), &envelope.signature.sig, scheme);
    signed.map_err(|_| "its statement was changed, or is signed with another key".to_owned())?;
    if envelope.payload_type != "application/vnd.in-toto+json" {
        return Err("it signs no statement of in-toto".to_owned());
    }
    let statement: Statement =
        serde_json::from_slice(envelope.payload.as_bytes()).map_err(|error| error.to_string())?;
    let wanted = Sha256::of(bytes).hex();
    let names =
        |subject: &sigstore_verify::types::Subject| subject.digest.sha256.is_some_and(|found| found.to_hex() == wanted);
    if !statement.subject.iter().any(names) {
        return Err("it is about another manifest".to_owned());
    }
    Ok(())
}
