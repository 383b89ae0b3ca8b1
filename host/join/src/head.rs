//! The head of a message: what decides who gets it, without its contents.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The members of a JSON-RPC message that the shim looks at.
#[derive(Deserialize)]
pub(crate) struct Head<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    /// The head of a line. `None` if the line is no JSON object.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Self> {
        // RFC 8259, section 8.1: a parser may ignore a byte order mark.
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line).trim_ascii_start();
        // serde also reads the members from a list.
        line.starts_with(b"{").then(|| serde_json::from_slice(line).ok())?
    }

    /// The id, in one spelling.
    pub(crate) fn id(&self) -> Option<String> {
        self.id.map(|id| normal(id.get()))
    }
}

/// The id of a successful answer, if the line begins as belljar writes one. Reads no more than that.
pub(crate) fn answered_id(line: &[u8]) -> Option<String> {
    let rest = line.strip_prefix(b"{\"jsonrpc\":\"2.0\",\"id\":")?;
    let end = match rest.first()? {
        // A string with an escape has another beginning for each spelling.
        b'"' => rest.iter().skip(1).position(|byte| matches!(byte, b'"' | b'\\'))? + 2,
        _ => rest.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-')?,
    };
    let (id, rest) = rest.split_at_checked(end)?;
    rest.starts_with(b",\"result\":").then(|| std::str::from_utf8(id).ok().map(str::to_owned))?
}

/// The beginning of the ids of this program's own requests, in JSON.
pub(crate) const OWN_ID: &str = "\"belljar-shim-";

/// The id of a successful answer that is for the client, whatever the request was. `None` for other lines.
pub fn client_answer_id(line: &[u8]) -> Option<String> {
    answered_id(line).filter(|id| !id.starts_with(OWN_ID))
}

/// One spelling of an id: escapes in a string, and the spaces around it, make no other id.
fn normal(id: &str) -> String {
    if id.bytes().all(|byte| byte.is_ascii_digit()) {
        return id.to_owned();
    }
    serde_json::from_str::<serde_json::Value>(id).map_or_else(|_| id.to_owned(), |id| id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_of_its_request_in_every_spelling() {
        let request = |id: &str| Head::parse(format!("{{\"id\": {id} ,\"method\":\"ping\"}}").as_bytes()).unwrap().id();
        for (asked, answered) in
            [("7", "7"), ("-3", "-3"), ("\"a\"", "\"a\""), ("\"\\u0061\"", "\"a\""), ("\"\"", "\"\"")]
        {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{answered},\"result\":{{}}}}");
            assert_eq!(request(asked), answered_id(line.as_bytes()), "{asked}");
        }
        for other in [
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"result"}}"#,
            r#"{"jsonrpc":"2.0","id":"a\"b","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"result":1}}"#,
            r#"{"jsonrpc":"2.0","method":"x","params":{"id":1}}"#,
            r#"{"jsonrpc":"2.0","id":"#,
            "",
        ] {
            assert_eq!(answered_id(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_line_that_is_no_message_has_no_head() {
        for other in ["", "nonsense", "[]", "{\"method\":1}", "7"] {
            assert!(Head::parse(other.as_bytes()).is_none(), "{other}");
        }
        assert_eq!(Head::parse(b"\xEF\xBB\xBF{\"id\":null}").unwrap().id(), None);
    }
}
