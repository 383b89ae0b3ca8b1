//! What crosses out of a call: the one place where a guest's words become words of belljar's.
//!
//! Secrets are masked in all of it: the host adds them behind the guest's back, but an upstream may have echoed one in a way
//! that nobody thought of, and a guest that was handed one is not to be trusted with it. Masked first, and then cleaned and
//! cut: what was cut through would not be found. Every type is taken apart whole, so that a new field does not compile before
//! somebody has said here what becomes of it. What the grants note crosses in `grants::trail`, by the same rule.

use crate::grants::secrets::Redactor;
use crate::model::error::WORDS;
use crate::model::{
    Annotations, Answer, Body, Contents, Decision, Description, Icon, Meta, Page, ReadError, Reading, Resource,
    Suggestions, Template, text,
};

/// Passes on the answer, or the words with which there is none.
pub(super) fn result(result: &mut Result<Answer, ReadError>, redactor: Option<&Redactor>) {
    match result {
        Ok(answer) => {
            if let Answer::Revisions(all) = answer {
                all.iter_mut().filter_map(|one| one.as_mut().err()).for_each(|error| self::error(error, redactor));
            }
            if let Some(redactor) = redactor {
                self::answer(answer, redactor);
            }
        }
        Err(error) => self::error(error, redactor),
    }
}

/// Words of a guest's, or of the engine about it: `text`, masked, cleaned and cut.
fn words(text: &mut String, redactor: Option<&Redactor>) {
    *text = match redactor {
        Some(redactor) => redactor.words(text, WORDS),
        None => text::cleaned(std::mem::take(text), WORDS),
    };
}

/// Passes on the words of an error.
pub(super) fn error(error: &mut ReadError, redactor: Option<&Redactor>) {
    match error {
        ReadError::Denied { message, denial } => {
            words(message, redactor);
            if let Some(Decision { grant: _, what, verdict: _, cure, times: _ }) = denial {
                words(what, redactor);
                cure.iter_mut().for_each(|cure| words(cure, redactor));
            }
        }
        ReadError::BadUri(said)
        | ReadError::Invalid(said)
        | ReadError::Busy(said)
        | ReadError::Unavailable(said)
        | ReadError::Down(said)
        | ReadError::Provider(said)
        | ReadError::Trapped(said)
        | ReadError::BadOutput(said)
        | ReadError::Internal(said) => words(said, redactor),
        ReadError::Again { last, times: _, pause: _ } => self::error(last, redactor),
        // What the gateway says of names is said behind this.
        ReadError::Nowhere { .. }
        | ReadError::NotFound
        | ReadError::BadState(_)
        | ReadError::Exhausted(_)
        | ReadError::Quarantined(_)
        | ReadError::Cancelled => {}
    }
}

/// Masks the secrets in an answer.
fn answer(answer: &mut Answer, redactor: &Redactor) {
    let text = |text: &mut String| redactor.mask(text);
    let some = |text: &mut Option<String>| text.iter_mut().for_each(|text| redactor.mask(text));
    match answer {
        Answer::Description(Description { title, version, description }) => {
            [title, version, description].into_iter().for_each(some);
        }
        Answer::Page(Page { resources, next }) => {
            some(next);
            for entry in resources {
                let Resource { reference, name, title, description, mime_type, size: _, annotations, icons, meta } =
                    entry;
                [reference, name].into_iter().for_each(text);
                [title, description, mime_type].into_iter().for_each(some);
                more(annotations, icons, meta, redactor);
            }
        }
        Answer::Templates(all) => {
            for entry in all {
                let Template { template, name, title, description, mime_type, annotations, icons, meta } = entry;
                [template, name].into_iter().for_each(text);
                [title, description, mime_type].into_iter().for_each(some);
                more(annotations, icons, meta, redactor);
            }
        }
        Answer::Reading(Reading { contents, fresh_for: _ }) => {
            for Contents { reference, mime_type, body, meta } in contents {
                text(reference);
                some(mime_type);
                match body {
                    Body::Text(body) => redactor.mask(body),
                    Body::Blob(body) => {
                        redactor.mask_bytes(body);
                    }
                }
                self::meta(meta, redactor);
            }
        }
        Answer::Suggestions(Suggestions { values, total: _ }) => values.iter_mut().for_each(text),
        Answer::Revision(revision) => text(revision),
        Answer::Revisions(all) => {
            // Errors have crossed already.
            all.iter_mut().flatten().for_each(text);
        }
    }
}

fn meta(meta: &mut Meta, redactor: &Redactor) {
    for (name, value) in meta {
        redactor.mask(name);
        redactor.mask(value);
    }
}

fn more(annotations: &mut Option<Annotations>, icons: &mut Vec<Icon>, meta: &mut Meta, redactor: &Redactor) {
    if let Some(Annotations { audience: _, priority: _, last_modified }) = annotations {
        last_modified.iter_mut().for_each(|text| redactor.mask(text));
    }
    for Icon { src, mime_type, sizes } in icons {
        redactor.mask(src);
        mime_type.iter_mut().chain(sizes).for_each(|text| redactor.mask(text));
    }
    self::meta(meta, redactor);
}
