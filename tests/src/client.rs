//! A small and strict MCP client: requests, answers, lists and reads, in both protocol eras, over stdio or HTTP.
//!
//! This module owns JSON-RPC and the form of MCP requests. A [`Wire`] owns the transport of the bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wait::DEADLINE;

/// How long a client waits for an answer.
pub const PATIENCE: Duration = DEADLINE;

/// The most pages of a list in a test. With more, the test fails instead of running for ever.
const MOST_PAGES: usize = 1_000;

/// The family of protocol revisions that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: `initialize`, then requests within a session.
    Session,
    /// 2026-07-28: no session. Each request carries its version, client and capabilities.
    Stateless,
}

/// A transport of messages between a client and a server: `Stdio` or `Http`.
pub trait Wire {
    /// Sends one message. If the transport returns the answer at once, it is stored for [`Wire::next`].
    fn send(&mut self, message: &Value);
    /// The next message from the server; `None` once `deadline` has passed.
    fn next(&mut self, deadline: Instant) -> Option<Value>;
    /// A description of the server's state for error messages, such as its standard error.
    fn diagnosis(&self) -> String;
}

/// A client on the wire `W`.
#[derive(Debug)]
pub struct Client<W> {
    wire: W,
    era: Era,
    last_id: u64,
    /// The methods of the requests without an answer, by id.
    waiting: BTreeMap<u64, String>,
    /// The answers that no `wait` has taken yet, by id.
    answers: BTreeMap<u64, Value>,
    /// How long [`Client::wait`] waits.
    pub patience: Duration,
    /// The server's description of itself: the result of `initialize` or of `server/discover`.
    pub greeting: Value,
    /// Notifications and requests from the server, in order.
    pub notifications: Vec<Value>,
}

/// The error of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC code.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// The data for programs. Null if there is none.
    pub data: Value,
}

/// The code "internal error" of JSON-RPC: the request was correct, but the server cannot answer it.
pub const INTERNAL: i64 = -32603;

impl Era {
    /// Both eras, oldest first.
    pub const ALL: [Era; 2] = [Era::Session, Era::Stateless];

    /// The protocol version that a client of this era asks for.
    pub fn version(self) -> &'static str {
        match self {
            Era::Session => "2025-11-25",
            Era::Stateless => "2026-07-28",
        }
    }

    /// The code of "no such resource" in this era.
    pub fn not_found(self) -> i64 {
        match self {
            Era::Session => -32002,
            Era::Stateless => -32602,
        }
    }

    /// The method and parameters of a client's first request. [`Era::add_meta`] adds the rest.
    pub fn greeting(self) -> (&'static str, Value) {
        match self {
            Era::Session => (
                "initialize",
                json!({ "protocolVersion": self.version(), "capabilities": {}, "clientInfo": identity() }),
            ),
            Era::Stateless => ("server/discover", json!({})),
        }
    }

    /// A complete request of this era.
    pub fn message(self, id: u64, method: &str, mut params: Value) -> Value {
        self.add_meta(&mut params);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Adds the keys of `_meta` that requests of this era need. Keeps existing keys.
    pub fn add_meta(self, params: &mut Value) {
        if self == Era::Stateless {
            let meta = &mut params["_meta"];
            for (key, value) in [
                ("protocolVersion", json!(self.version())),
                ("clientInfo", identity()),
                ("clientCapabilities", json!({})),
            ] {
                let own = &mut meta[format!("io.modelcontextprotocol/{key}")];
                if own.is_null() {
                    *own = value;
                }
            }
        }
    }
}

impl<W: Wire> Client<W> {
    /// Initializes the connection: sends `initialize` and `notifications/initialized`, or `server/discover`.
    pub fn connect(wire: W, era: Era) -> Client<W> {
        let mut client = Client::connect_silently(wire, era);
        let (method, params) = era.greeting();
        client.greeting =
            client.request(method, params).unwrap_or_else(|error| panic!("the greeting was refused: {error}"));
        if era == Era::Session {
            assert_eq!(client.greeting["protocolVersion"], era.version(), "an agreed version");
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// A client that has sent no message yet.
    pub fn connect_silently(wire: W, era: Era) -> Client<W> {
        Client {
            wire,
            era,
            last_id: 0,
            waiting: BTreeMap::new(),
            answers: BTreeMap::new(),
            patience: PATIENCE,
            greeting: Value::Null,
            notifications: Vec::new(),
        }
    }

    /// The protocol era of this client.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The wire, read-only.
    pub fn wire_ref(&self) -> &W {
        &self.wire
    }

    /// The wire.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Sends a request, and waits for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.send(method, params);
        self.wait(id)
    }

    /// Sends a request and returns its id for [`Client::wait`]. Over HTTP, this method waits for the answer.
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.era.add_meta(&mut params);
        self.waiting.insert(id, method.to_owned());
        self.wire.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request. Panics if none comes within [`Client::patience`].
    pub fn wait(&mut self, id: u64) -> Result<Value, RpcError> {
        let patience = self.patience;
        self.wait_for(id, patience).unwrap_or_else(|| {
            let method = self.waiting.get(&id).map_or("an unknown request", String::as_str);
            panic!("no answer to {method} (id {id}) within {patience:?}; {}", self.wire.diagnosis())
        })
    }

    /// Waits for the answer to a request. `None` if no answer comes within `patience`.
    pub fn wait_for(&mut self, id: u64, patience: Duration) -> Option<Result<Value, RpcError>> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Some(outcome(answer));
            }
            let message = self.wire.next(deadline)?;
            self.sort(message);
        }
    }

    /// The next notification or request from the server. `None` if none comes within `patience`.
    pub fn next_notification(&mut self, patience: Duration) -> Option<Value> {
        let deadline = Instant::now() + patience;
        while self.notifications.is_empty() {
            let message = self.wire.next(deadline)?;
            self.sort(message);
        }
        Some(self.notifications.remove(0))
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, mut params: Value) {
        self.era.add_meta(&mut params);
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Cancels a request.
    pub fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "test" }));
    }

    /// Sends `ping`, or `server/discover` without a session: revision 2026-07-28 has no `ping`.
    pub fn ping(&mut self) {
        let method = match self.era {
            Era::Session => "ping",
            Era::Stateless => "server/discover",
        };
        self.request(method, json!({})).unwrap_or_else(|error| panic!("{method} was refused: {error}"));
    }

    /// All pages of a listing, each as the items under `key`.
    pub fn pages(&mut self, method: &str, key: &str) -> Vec<Vec<Value>> {
        let mut pages = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self
                .request(method, params)
                .unwrap_or_else(|error| panic!("{method} was refused on page {}: {error}", pages.len()));
            let Value::Array(items) = page[key].take() else { panic!("{method} answered without {key}: {page}") };
            pages.push(items);
            assert!(pages.len() < MOST_PAGES, "{method} has no end");
            match &page["nextCursor"] {
                Value::Null => return pages,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
    }

    /// Every resource, over all pages.
    pub fn resources(&mut self) -> Vec<Value> {
        self.pages("resources/list", "resources").concat()
    }

    /// The URI of every resource, over all pages.
    pub fn uris(&mut self) -> Vec<String> {
        let resources = self.resources();
        resources.iter().map(|item| text_of(&item["uri"])).collect()
    }

    /// The URI template of every template, over all pages.
    pub fn templates(&mut self) -> Vec<String> {
        let templates = self.pages("resources/templates/list", "resourceTemplates").concat();
        templates.iter().map(|item| text_of(&item["uriTemplate"])).collect()
    }

    /// Reads a resource. Returns the complete result.
    pub fn read(&mut self, uri: &str) -> Result<Value, RpcError> {
        self.request("resources/read", json!({ "uri": uri }))
    }

    /// Reads the text of a resource with one content.
    pub fn text(&mut self, uri: &str) -> String {
        text_of(&self.sole_content(uri)["text"])
    }

    /// Reads the bytes of a binary resource with one content.
    pub fn blob(&mut self, uri: &str) -> Vec<u8> {
        use base64::Engine as _;
        let encoded = text_of(&self.sole_content(uri)["blob"]);
        base64::engine::general_purpose::STANDARD
            .decode(encoded)
            .unwrap_or_else(|error| panic!("the blob of {uri} is not base64: {error}"))
    }

    fn sole_content(&mut self, uri: &str) -> Value {
        let mut result = self.read(uri).unwrap_or_else(|error| panic!("cannot read {uri}: {error}"));
        match result["contents"].take() {
            Value::Array(mut contents) if contents.len() == 1 => contents.remove(0),
            other => panic!("{uri} must have one content, but has {other}"),
        }
    }

    /// Stores a message as an answer or a notification. Panics for a second answer, or for an answer without a request.
    fn sort(&mut self, message: Value) {
        let Some(id) = message.get("id").filter(|_| message.get("method").is_none()) else {
            self.notifications.push(message);
            return;
        };
        let known = id.as_u64().filter(|id| self.waiting.remove(id).is_some());
        let Some(id) = known else { panic!("an answer to a request that is not in flight: {message}") };
        self.answers.insert(id, message);
    }

    pub(crate) fn into_wire(self) -> W {
        self.wire
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {} {}", self.code, self.message, self.data)
    }
}

/// The name and version that these clients send.
fn identity() -> Value {
    json!({ "name": "belljar-tests", "version": env!("CARGO_PKG_VERSION") })
}

/// Splits an answer into result or error. Panics if it has both or neither.
pub(crate) fn outcome(mut answer: Value) -> Result<Value, RpcError> {
    match (answer.get("result").is_some(), answer.get("error").is_some()) {
        (true, false) => Ok(answer["result"].take()),
        (false, true) => Err(RpcError {
            code: answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error without a code: {answer}")),
            message: text_of(&answer["error"]["message"]),
            data: answer["error"]["data"].take(),
        }),
        _ => panic!("neither a result nor an error: {answer}"),
    }
}

fn text_of(value: &Value) -> String {
    let text = value.as_str().unwrap_or_else(|| panic!("expected a string, found {value}"));
    text.to_owned()
}
