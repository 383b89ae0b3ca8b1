//! The arguments of a tool call, taken out one by one, so that what is left over was not understood.
//!
//! What is wrong with one is told to the model, with its name and what was expected: it can call again.

use std::ops::RangeInclusive;

use rmcp::model::{ErrorData, JsonObject};
use serde_json::Value;

use super::super::fault;
use crate::model::text;

/// How alike a name must be to be proposed.
const ALIKE: f64 = 0.6;

/// What a tool was called with.
pub(super) struct Arguments {
    tool: &'static str,
    given: JsonObject,
    known: Vec<&'static str>,
}

impl Arguments {
    pub(super) fn new(tool: &'static str, given: Option<JsonObject>) -> Self {
        Self { tool, given: given.unwrap_or_default(), known: Vec::new() }
    }

    /// Says what is wrong with the argument `name`.
    pub(super) fn wrong(&self, name: &str, expected: &str) -> ErrorData {
        fault::bad_argument(&format!("the argument \"{name}\" of \"{}\" is malformed; expected {expected}", self.tool))
    }

    /// Takes an argument; `null` is as good as none, because that is what many clients send for none.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    /// A text, read by `read`.
    pub(super) fn text<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_str().and_then(read).map(Some).ok_or_else(|| self.wrong(name, expected))
    }

    /// A text that must be there.
    pub(super) fn required(&mut self, name: &'static str, expected: &str) -> Result<String, ErrorData> {
        self.text(name, expected, |text| Some(text.to_owned()))?
            .ok_or_else(|| fault::bad_argument(&format!("\"{}\" wants the argument \"{name}\": {expected}", self.tool)))
    }

    /// True or false.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.wrong(name, "true or false"))
    }

    /// A whole number.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<usize>,
        otherwise: usize,
    ) -> Result<usize, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(otherwise) };
        // Some clients have floating numbers only.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, positive and small")]
        let whole = |number: f64| {
            (number.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&number)).then_some(number as u64)
        };
        let number = value.as_u64().or_else(|| value.as_f64().and_then(whole));
        let number = number.and_then(|number| usize::try_from(number).ok()).filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let upper = match *range.end() {
                usize::MAX => " or more".to_owned(),
                end => format!(" to {end}"),
            };
            self.wrong(name, &format!("a whole number, {}{upper}", range.start()))
        })
    }

    /// Says what is left over.
    pub(super) fn finish(self) -> Result<(), ErrorData> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let quoted = |name: &&str| format!("\"{name}\"");
        let alike = |known: &&&str| strsim::jaro_winkler(name, known) >= ALIKE;
        let nearest = self
            .known
            .iter()
            .filter(alike)
            .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
        let meant = nearest.map(|known| format!("; did you mean \"{known}\"?")).unwrap_or_default();
        let known = self.known.iter().map(quoted).collect::<Vec<_>>().join(", ");
        Err(fault::bad_argument(&format!(
            "\"{}\" has no argument \"{}\"{meant} It has {known}",
            self.tool,
            text::excerpt(name, 80)
        )))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(given: Value) -> Arguments {
        Arguments::new("read_resource", given.as_object().cloned())
    }

    #[test]
    fn what_is_wrong_is_named_with_what_was_expected() {
        let number = |given| arguments(given).number("limit", 1..=200, 50);
        assert_eq!(number(json!({})).unwrap(), 50);
        assert_eq!(number(json!({ "limit": null })).unwrap(), 50);
        assert_eq!(number(json!({ "limit": 7.0 })).unwrap(), 7);
        for bad in [json!(0), json!(201), json!(-1), json!(1.5), json!("7"), json!(1e300), json!([7])] {
            let error = number(json!({ "limit": bad })).unwrap_err();
            assert!(error.message.contains("\"limit\""), "{error:?}");
            assert!(error.message.contains("1 to 200"), "{error:?}");
        }
        assert!(arguments(json!({ "templates": "yes" })).flag("templates").unwrap_err().message.contains("true or"));
        assert!(arguments(json!({})).required("uri", "a URI").unwrap_err().message.contains("\"uri\""));
        assert!(arguments(json!({ "uri": 5 })).required("uri", "a URI").unwrap_err().message.contains("\"uri\""));
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        let mut arguments = arguments(json!({ "uri": "x", "ofset": 3 }));
        arguments.required("uri", "a URI").unwrap();
        arguments.number("offset", 0..=usize::MAX, 0).unwrap();
        let error = arguments.finish().unwrap_err();
        assert!(error.message.contains("\"ofset\"; did you mean \"offset\"?"), "{error:?}");
        assert!(error.message.contains("\"uri\", \"offset\""), "{error:?}");
    }
}
