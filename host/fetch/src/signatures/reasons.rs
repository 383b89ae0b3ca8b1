//! Why a signature is refused, in the words of an operator. `sigstore-verify` speaks to programmers.

use sigstore_verify::{CertificateError, Error, TimestampError, TransparencyLogError};

use crate::text;

/// The reason for a person: usual ones in plain words, rare ones as they are.
pub(super) fn shown(error: &Error) -> String {
    let details = error.to_string();
    let plain = match error {
        Error::Certificate(CertificateError::Expired { .. }) => "its certificate had expired when it was made",
        Error::Certificate(CertificateError::NotYetValid { .. }) => {
            "its certificate was not valid yet when it was made"
        }
        // These come as texts of the library that checks chains.
        Error::Certificate(_) if details.contains("CertExpired") => "its certificate had expired when it was made",
        Error::Certificate(_) if details.contains("CertNotValidYet") => {
            "its certificate was not valid yet when it was made"
        }
        Error::Certificate(CertificateError::ChainInvalid(_)) => "its certificate is of no trusted authority",
        Error::Certificate(CertificateError::Sct(_)) => "no trusted log lists its certificate",
        Error::ArtifactMismatch(_) => "it is about another manifest",
        Error::SignatureInvalid(_) => "its statement was changed, or is signed with another key",
        Error::TransparencyLog(TransparencyLogError::UnknownLog { .. }) => "no trusted log lists it",
        Error::TransparencyLog(TransparencyLogError::EntryMismatch(_)) => "the log's entry is about another signature",
        Error::Timestamp(TimestampError::NoVerifiedTimestamp(_)) => "nothing confirms when it was made",
        _ => return text::clean(&details, text::SENTENCE),
    };
    plain.to_owned()
}
