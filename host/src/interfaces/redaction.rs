//! Redacts everything that leaves a call: masks the secrets of the mount, and cleans the texts of errors.
//!
//! The host adds secrets to requests outside the guest, but an upstream may echo a secret in its response, and a guest
//! may return a secret that it was given. Masking comes before cleaning and cutting, because a secret that was cut in
//! two would not be found.
//!
//! Every type is destructured completely. So a new field does not compile until this file, or its interface, handles
//! it. `grants::call_record` masks the records of the grants by the same rule.

use crate::grants::secrets::Redactor;
use crate::model::busy::BusyReason;
use crate::model::error::MAX_PROVIDER_TEXT;
use crate::model::{Annotations, Body, Contents, Decision, Icon, Meta, ReadError, text};

/// Masks, cleans and cuts a text of a guest, or of the engine about a guest.
fn redact_text(text: &mut String, redactor: Option<&Redactor>) {
    *text = match redactor {
        Some(redactor) => redactor.excerpt(text, MAX_PROVIDER_TEXT),
        None => text::cleaned(std::mem::take(text), MAX_PROVIDER_TEXT),
    };
}

/// Redacts the texts of an error.
pub fn redact_error(error: &mut ReadError, redactor: Option<&Redactor>) {
    match error {
        ReadError::Denied { message, denial } => {
            redact_text(message, redactor);
            if let Some(Decision { grant: _, target, verdict: _, cure, times: _ }) = denial {
                redact_text(target, redactor);
                cure.iter_mut().for_each(|cure| redact_text(cure, redactor));
            }
        }
        ReadError::BadUri(text)
        | ReadError::Invalid(text)
        | ReadError::BadArguments(text)
        | ReadError::BadAnswer(text)
        | ReadError::Busy(BusyReason { why: text, retry_after: _ })
        | ReadError::Unavailable(text)
        | ReadError::ProviderUnavailable(text)
        | ReadError::ProviderFailed(text)
        | ReadError::Trapped(text)
        | ReadError::BadOutput(text)
        | ReadError::Internal(text) => redact_text(text, redactor),
        ReadError::CircuitOpen { last, times: _, retry_after: _ } => redact_error(last, redactor),
        // These hold no text of a guest. The gateway creates some of them after this point.
        ReadError::NotFoundWithHint { .. }
        | ReadError::NotFound
        | ReadError::BadRequestState(_)
        | ReadError::NoPrincipalSecret { .. }
        | ReadError::Exhausted(_)
        | ReadError::ToolExhausted(_)
        | ReadError::Quarantined(_)
        | ReadError::InsufficientScope { .. }
        | ReadError::Unauthenticated(_)
        | ReadError::Cancelled => {}
    }
}

/// Masks the secrets in `_meta` entries.
pub(super) fn mask_meta(meta: &mut Meta, redactor: &Redactor) {
    for (name, value) in meta {
        redactor.mask(name);
        redactor.mask(value);
    }
}

/// Masks the secrets in the annotations, icons and `_meta` of an entry.
pub(super) fn mask_details(
    annotations: &mut Option<Annotations>,
    icons: &mut Vec<Icon>,
    meta: &mut Meta,
    redactor: &Redactor,
) {
    mask_annotations(annotations, redactor);
    for Icon { src, mime_type, sizes } in icons {
        redactor.mask(src);
        mime_type.iter_mut().chain(sizes).for_each(|text| redactor.mask(text));
    }
    mask_meta(meta, redactor);
}

/// Masks the secrets in annotations.
pub(super) fn mask_annotations(annotations: &mut Option<Annotations>, redactor: &Redactor) {
    if let Some(Annotations { audience: _, priority: _, last_modified }) = annotations {
        mask_optional(last_modified, redactor);
    }
}

/// Masks the secrets in contents.
pub(super) fn mask_contents(Contents { reference, mime_type, body, meta }: &mut Contents, redactor: &Redactor) {
    redactor.mask(reference);
    mask_optional(mime_type, redactor);
    match body {
        Body::Text(body) => redactor.mask(body),
        Body::Blob(body) => {
            redactor.mask_bytes(body);
        }
    }
    mask_meta(meta, redactor);
}

/// Masks the secrets in an optional text.
pub(super) fn mask_optional(text: &mut Option<String>, redactor: &Redactor) {
    text.iter_mut().for_each(|text| redactor.mask(text));
}
