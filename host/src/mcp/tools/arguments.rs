//! The arguments of a tool call. A tool takes its arguments one by one; an argument that is left over is unknown.
//!
//! An error names the argument and the expected value, so that the model can call again.

use std::ops::RangeInclusive;

use rmcp::model::{ErrorData, JsonObject};
use serde_json::Value;

use super::super::fault;
use crate::model::text;

/// Least Jaro-Winkler similarity of a known name that is proposed for an unknown one.
const MIN_SIMILARITY: f64 = 0.6;

/// The arguments of one tool call.
pub(super) struct Arguments {
    tool: &'static str,
    given: JsonObject,
    known: Vec<&'static str>,
}

impl Arguments {
    pub(super) fn new(tool: &'static str, given: Option<JsonObject>) -> Self {
        Self { tool, given: given.unwrap_or_default(), known: Vec::new() }
    }

    /// The error of a malformed argument `name`.
    pub(super) fn malformed(&self, name: &str, expected: &str) -> ErrorData {
        fault::bad_argument(&format!("the argument \"{name}\" of \"{}\" is malformed; expected {expected}", self.tool))
    }

    /// Takes an argument. `null` means absent: many clients send it for an absent argument.
    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.given.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a string argument, parsed by `read`. `None` if it is absent.
    pub(super) fn text<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_str().and_then(read).map(Some).ok_or_else(|| self.malformed(name, expected))
    }

    /// Takes a required string argument.
    pub(super) fn required(&mut self, name: &'static str, expected: &str) -> Result<String, ErrorData> {
        self.text(name, expected, |text| Some(text.to_owned()))?.ok_or_else(|| {
            fault::bad_argument(&format!("\"{}\" requires the argument \"{name}\": {expected}", self.tool))
        })
    }

    /// Takes a boolean argument. An absent one is false.
    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.malformed(name, "true or false"))
    }

    /// Takes a whole number within `range`. An absent one is `otherwise`.
    pub(super) fn number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<usize>,
        otherwise: usize,
    ) -> Result<usize, ErrorData> {
        let Some(value) = self.take(name) else { return Ok(otherwise) };
        // Some clients send every number as a float.
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
            self.malformed(name, &format!("a whole number, {}{upper}", range.start()))
        })
    }

    /// Refuses arguments that were not taken.
    pub(super) fn refuse_unknown(self) -> Result<(), ErrorData> {
        let Some(name) = self.given.keys().next() else { return Ok(()) };
        let quoted = |name: &&str| format!("\"{name}\"");
        let alike = |known: &&&str| strsim::jaro_winkler(name, known) >= MIN_SIMILARITY;
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
    fn an_error_names_the_argument_and_the_expected_value() {
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
    fn the_error_of_an_unknown_argument_names_the_known_ones() {
        let mut arguments = arguments(json!({ "uri": "x", "ofset": 3 }));
        arguments.required("uri", "a URI").unwrap();
        arguments.number("offset", 0..=usize::MAX, 0).unwrap();
        let error = arguments.refuse_unknown().unwrap_err();
        assert!(error.message.contains("\"ofset\"; did you mean \"offset\"?"), "{error:?}");
        assert!(error.message.contains("\"uri\", \"offset\""), "{error:?}");
    }
}
