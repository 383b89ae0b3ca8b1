//! HTTP requests with a credential, in each revision of the protocol.

use belljar_tests::{Era, Response, Server, Site};
use serde_json::{Value, json};

/// The revisions with sessions that belljar speaks over HTTP, newest first.
pub(crate) const SESSION_REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2024-11-05"];

/// The revision without sessions.
pub(crate) const STATELESS_REVISION: &str = "2026-07-28";

/// One client: a server, a revision of the protocol, and a credential.
#[derive(Clone)]
pub(crate) struct HttpCaller<'a> {
    server: &'a Server,
    revision: &'a str,
    credential: Option<&'a str>,
    session: Option<String>,
}

impl<'a> HttpCaller<'a> {
    /// A client of revision 2026-07-28.
    pub(crate) fn stateless(server: &'a Server, credential: Option<&'a str>) -> HttpCaller<'a> {
        HttpCaller { server, revision: STATELESS_REVISION, credential, session: None }
    }

    /// A client of this revision. Opens a session if the revision has sessions.
    ///
    /// # Errors
    /// The answer of a server that opens no session.
    pub(crate) fn connect(
        server: &'a Server,
        revision: &'a str,
        credential: Option<&'a str>,
    ) -> Result<HttpCaller<'a>, Response> {
        let mut caller = HttpCaller { server, revision, credential, session: None };
        if revision != STATELESS_REVISION {
            let identity = json!({ "name": "test", "version": "1" });
            let params = json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": identity });
            let answer = caller.request("initialize", params);
            let Some(session) = answer.header("mcp-session-id") else { return Err(answer) };
            assert_eq!(message(&answer)["result"]["protocolVersion"], revision);
            caller.session = Some(session.to_owned());
            let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
            assert_eq!(caller.post(&initialized).status, 202);
        }
        Ok(caller)
    }

    /// The same client and session with another credential.
    pub(crate) fn with_credential(&self, credential: &'a str) -> HttpCaller<'a> {
        HttpCaller { credential: Some(credential), ..self.clone() }
    }

    /// The same client with another session.
    pub(crate) fn with_session(&self, session: &str) -> HttpCaller<'a> {
        HttpCaller { session: Some(session.to_owned()), ..self.clone() }
    }

    /// Sends a request.
    pub(crate) fn request(&self, method: &str, params: Value) -> Response {
        let message = match self.revision {
            STATELESS_REVISION => Era::Stateless.message(1, method, params),
            _ => json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }),
        };
        self.post(&message)
    }

    /// Reads a resource.
    pub(crate) fn read(&self, uri: &str) -> Response {
        self.request("resources/read", json!({ "uri": uri }))
    }

    /// The URIs of the first page of `resources/list`.
    pub(crate) fn uris(&self) -> Vec<String> {
        let answer = self.request("resources/list", json!({}));
        let list = message(&answer)["result"]["resources"].clone();
        let entries = list.as_array().unwrap_or_else(|| panic!("no list: {}", answer.text()));
        entries.iter().map(|entry| entry["uri"].as_str().unwrap().to_owned()).collect()
    }

    fn post(&self, message: &Value) -> Response {
        let era = if self.revision == STATELESS_REVISION { Era::Stateless } else { Era::Session };
        let mut headers = self.server.wire(era).headers(message);
        headers.retain(|(name, _)| *name != "MCP-Protocol-Version");
        // Revision 2024-11-05 does not have this header, and the first request of a session cannot know its value.
        if self.revision != "2024-11-05" && (era == Era::Stateless || self.session.is_some()) {
            headers.push(("MCP-Protocol-Version", self.revision.to_owned()));
        }
        headers.extend(self.session.iter().map(|session| ("Mcp-Session-Id", session.clone())));
        headers.extend(self.credential.map(|credential| ("Authorization", format!("Bearer {credential}"))));
        self.server.post(&headers, message)
    }
}

/// The JSON-RPC message of an answer: its body, or its last event.
pub(crate) fn message(answer: &Response) -> Value {
    let text = answer.text();
    let mut events = text.lines().filter_map(|line| line.strip_prefix("data:")).filter(|data| !data.trim().is_empty());
    let last = events.next_back().unwrap_or(&text);
    serde_json::from_str(last.trim()).unwrap_or_else(|error| panic!("HTTP {}: {error}: {text}", answer.status))
}

/// Runs a command that must succeed. Returns its standard output.
pub(crate) fn stdout_of(site: &Site, arguments: &[&str]) -> String {
    let output = site.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", crate::support::stdout_and_stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}
