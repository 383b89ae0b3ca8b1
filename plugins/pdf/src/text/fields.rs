//! The text of annotations that have no picture of it: the values of form fields, and free text.

use hayro_syntax::object::{Array, Dict, Name, Object, String as Text};

use crate::strings;

/// The most ancestors of a field that are searched for an inherited entry.
const MAX_PARENTS: usize = 16;

/// The field flag "password" (ISO 32000-1, table 228).
const PASSWORD: u32 = 1 << 13;

/// The lines of text that an annotation shows. Empty for annotations without text.
pub(crate) fn lines(annotation: &Dict<'_>) -> Vec<String> {
    let subtype = annotation.get::<Name<'_>>("Subtype");
    let text = match subtype.as_ref().map(Name::as_str) {
        Some("FreeText") => annotation.get::<Text<'_>>("Contents").map(|text| strings::decode_raw(text.as_bytes())),
        Some("Widget") => value(annotation),
        _ => None,
    };
    let text = text.unwrap_or_default();
    let lines = text.split(['\n', '\r']).map(|line| line.replace(char::is_control, " "));
    lines.filter(|line| !line.trim().is_empty()).collect()
}

/// The value of a text field, or the chosen options of a list, one a line.
fn value(field: &Dict<'_>) -> Option<String> {
    let kind = inherited(field, |field| field.get::<Name<'_>>("FT").map(|kind| kind.as_str().to_owned()))?;
    let flags = inherited(field, |field| field.get::<u32>("Ff")).unwrap_or(0);
    if !matches!(kind.as_str(), "Tx" | "Ch") || (kind == "Tx" && flags & PASSWORD != 0) {
        return None;
    }
    let values: Vec<String> = match inherited(field, |field| field.get::<Object<'_>>("V"))? {
        Object::String(text) => vec![strings::decode_raw(text.as_bytes())],
        Object::Array(all) => all.iter::<Text<'_>>().map(|text| strings::decode_raw(text.as_bytes())).collect(),
        Object::Stream(text) => vec![strings::decode_raw(&text.decoded().ok()?)],
        _ => return None,
    };
    if kind == "Tx" {
        return Some(values.join("\n"));
    }
    let options = inherited(field, |field| field.get::<Array<'_>>("Opt"));
    Some(values.into_iter().map(|value| shown(options.as_ref(), value)).collect::<Vec<_>>().join("\n"))
}

/// The text that a list shows for an option. An option may be a pair of a value and its text.
fn shown(options: Option<&Array<'_>>, value: String) -> String {
    let pairs = options.into_iter().flat_map(Array::iter::<Array<'_>>);
    for pair in pairs {
        let mut parts = pair.iter::<Text<'_>>().map(|text| strings::decode_raw(text.as_bytes()));
        if let (Some(export), Some(text)) = (parts.next(), parts.next())
            && export == value
        {
            return text;
        }
    }
    value
}

/// An entry of a field or of its nearest ancestor that has it.
fn inherited<'a, T>(field: &Dict<'a>, get: impl Fn(&Dict<'a>) -> Option<T>) -> Option<T> {
    let mut field = field.clone();
    for _ in 0..MAX_PARENTS {
        if let Some(found) = get(&field) {
            return Some(found);
        }
        field = field.get::<Dict<'_>>("Parent")?;
    }
    None
}
