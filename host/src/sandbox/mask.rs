//! Secrets are masked in whatever a call gives: the host adds them behind the guest's back, but an upstream may have echoed
//! one in a way that nobody thought of, and a guest that was handed one is not to be trusted with it.

use crate::grants::secrets::Redactor;
use crate::model::{Annotations, Answer, Body, Icon, Meta, ReadError};

/// Masks them in the answer, or in the words with which there is none.
pub(super) fn result(result: &mut Result<Answer, ReadError>, redactor: &Redactor) {
    match result {
        Ok(answer) => self::answer(answer, redactor),
        Err(error) => self::error(error, redactor),
    }
}

fn error(error: &mut ReadError, redactor: &Redactor) {
    match error {
        ReadError::Denied { message: words, .. }
        | ReadError::BadUri(words)
        | ReadError::Invalid(words)
        | ReadError::Busy(words)
        | ReadError::Unavailable(words)
        | ReadError::Provider(words)
        | ReadError::Trapped(words)
        | ReadError::BadOutput(words)
        | ReadError::Internal(words) => redactor.mask(words),
        ReadError::Again { last, .. } => self::error(last, redactor),
        ReadError::NotFound
        // Said by the gateway, of names only.
        | ReadError::Nowhere { .. }
        | ReadError::BadState(_)
        | ReadError::Exhausted(_)
        | ReadError::Quarantined(_)
        | ReadError::Cancelled => {}
    }
}

fn answer(answer: &mut Answer, redactor: &Redactor) {
    let text = |text: &mut String| redactor.mask(text);
    let some = |text: &mut Option<String>| text.iter_mut().for_each(|text| redactor.mask(text));
    let meta = |meta: &mut Meta| {
        for (name, value) in meta {
            redactor.mask(name);
            redactor.mask(value);
        }
    };
    let icons = |icons: &mut Vec<Icon>| {
        for icon in icons {
            redactor.mask(&mut icon.src);
            icon.mime_type.iter_mut().chain(&mut icon.sizes).for_each(|text| redactor.mask(text));
        }
    };
    let annotations = |annotations: &mut Option<Annotations>| {
        annotations.iter_mut().filter_map(|a| a.last_modified.as_mut()).for_each(|text| redactor.mask(text));
    };
    match answer {
        Answer::Description(about) => {
            [&mut about.title, &mut about.version, &mut about.description].into_iter().for_each(some);
        }
        Answer::Page(page) => {
            some(&mut page.next);
            for entry in &mut page.resources {
                [&mut entry.reference, &mut entry.name].into_iter().for_each(text);
                [&mut entry.title, &mut entry.description, &mut entry.mime_type].into_iter().for_each(some);
                annotations(&mut entry.annotations);
                icons(&mut entry.icons);
                meta(&mut entry.meta);
            }
        }
        Answer::Templates(all) => {
            for entry in all {
                [&mut entry.template, &mut entry.name].into_iter().for_each(text);
                [&mut entry.title, &mut entry.description, &mut entry.mime_type].into_iter().for_each(some);
                annotations(&mut entry.annotations);
                icons(&mut entry.icons);
                meta(&mut entry.meta);
            }
        }
        Answer::Reading(reading) => {
            for contents in &mut reading.contents {
                text(&mut contents.reference);
                some(&mut contents.mime_type);
                match &mut contents.body {
                    Body::Text(body) => redactor.mask(body),
                    Body::Blob(body) => {
                        redactor.mask_bytes(body);
                    }
                }
                meta(&mut contents.meta);
            }
        }
        Answer::Suggestions(given) => given.values.iter_mut().for_each(text),
        Answer::Revision(revision) => text(revision),
        Answer::Revisions(all) => {
            for one in all {
                match one {
                    Ok(revision) => text(revision),
                    Err(why) => error(why, redactor),
                }
            }
        }
    }
}
