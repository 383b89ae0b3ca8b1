//! An MCP client, strict and small: requests, answers, listings and reads, in both protocol eras, over either wire.
//!
//! It knows JSON-RPC and the shape of an MCP request, and nothing of how bytes travel ([`Wire`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long an answer may take before a test calls it missing: longer than any limit that a test sets.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// More pages than any listing of a test has: a listing that never ends is a failure, not a hang.
const MOST_PAGES: usize = 1_000;

/// Which family of the protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25: `initialize`, then requests within a session.
    Older,
    /// 2026-07-28: no session; each request says its version, client and capabilities.
    Modern,
}

/// One way for messages to travel.
pub trait Wire {
    /// Sends one message. An answer that comes with it is kept for [`Wire::next`].
    fn send(&mut self, message: &Value);
    /// The next message from the server; `None` once `deadline` has passed.
    fn next(&mut self, deadline: Instant) -> Option<Value>;
    /// Tells what is known about a server that does not answer.
    fn diagnosis(&self) -> String;
}

/// A client on the wire `W`.
#[derive(Debug)]
pub struct Client<W> {
    wire: W,
    era: Era,
    last_id: u64,
    waiting: BTreeMap<u64, String>,
    answers: BTreeMap<u64, Value>,
    /// How long [`Client::wait`] waits.
    pub patience: Duration,
    /// What the server said of itself: the result of `initialize` or of `server/discover`.
    pub greeting: Value,
    /// Messages from the server that answered nothing, in order.
    pub notifications: Vec<Value>,
}

/// The error that came instead of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// JSON-RPC code.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// The message for programs; null where there was none.
    pub data: Value,
}

/// JSON-RPC's "internal error": the request was fine, and there is no answer.
pub const INTERNAL: i64 = -32603;

impl Era {
    /// Both, oldest first.
    pub const ALL: [Era; 2] = [Era::Older, Era::Modern];

    /// The protocol version that a client of this era asks for.
    pub fn version(self) -> &'static str {
        match self {
            Era::Older => "2025-11-25",
            Era::Modern => "2026-07-28",
        }
    }

    /// The code of "no such resource" in this era.
    pub fn not_found(self) -> i64 {
        match self {
            Era::Older => -32002,
            Era::Modern => -32602,
        }
    }

    /// What a client of this era says first: the method, and the parameters before [`Era::dress`].
    pub fn greeting(self) -> (&'static str, Value) {
        match self {
            Era::Older => (
                "initialize",
                json!({ "protocolVersion": self.version(), "capabilities": {}, "clientInfo": identity() }),
            ),
            Era::Modern => ("server/discover", json!({})),
        }
    }

    /// A whole request of this era.
    pub fn message(self, id: u64, method: &str, mut params: Value) -> Value {
        self.dress(&mut params);
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Adds what a request of this era carries beside its own parameters; what is there already stays.
    pub fn dress(self, params: &mut Value) {
        if self == Era::Modern {
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
    /// Greets the server behind `wire`: `initialize` and `notifications/initialized`, or `server/discover`.
    pub fn connect(wire: W, era: Era) -> Client<W> {
        let mut client = Client::connect_silently(wire, era);
        let (method, params) = era.greeting();
        client.greeting =
            client.request(method, params).unwrap_or_else(|error| panic!("the greeting was refused: {error}"));
        if era == Era::Older {
            assert_eq!(client.greeting["protocolVersion"], era.version(), "an agreed version");
            client.notify("notifications/initialized", json!({}));
        }
        client
    }

    /// A client that has said nothing yet.
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

    /// The era it speaks.
    pub fn era(&self) -> Era {
        self.era
    }

    /// The wire beneath, to look at.
    pub fn wire_ref(&self) -> &W {
        &self.wire
    }

    /// The wire beneath.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// One request and its answer.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.send(method, params);
        self.wait(id)
    }

    /// Sends a request without waiting; the id is for [`Client::wait`]. (Over HTTP the exchange is over on return.)
    pub fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.era.dress(&mut params);
        self.waiting.insert(id, method.to_owned());
        self.wire.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to a request in flight; that none comes within [`Client::patience`] is a failure.
    pub fn wait(&mut self, id: u64) -> Result<Value, RpcError> {
        let patience = self.patience;
        self.wait_for(id, patience).unwrap_or_else(|| {
            let method = self.waiting.get(&id).map_or("an unknown request", String::as_str);
            panic!("no answer to {method} (id {id}) within {patience:?}; {}", self.wire.diagnosis())
        })
    }

    /// The answer to a request in flight, if it comes within `patience`.
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

    /// The next message from the server that answers nothing, if one comes within `patience`.
    pub fn told(&mut self, patience: Duration) -> Option<Value> {
        let deadline = Instant::now() + patience;
        while self.notifications.is_empty() {
            let message = self.wire.next(deadline)?;
            self.sort(message);
        }
        Some(self.notifications.remove(0))
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, mut params: Value) {
        self.era.dress(&mut params);
        self.wire.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Says that the answer to a request is no longer wanted.
    pub fn cancel(&mut self, id: u64) {
        self.notify("notifications/cancelled", json!({ "requestId": id, "reason": "test" }));
    }

    /// `ping`, or in the modern era, which has none, `server/discover`.
    pub fn ping(&mut self) {
        let method = match self.era {
            Era::Older => "ping",
            Era::Modern => "server/discover",
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

    /// One read: the whole result.
    pub fn read(&mut self, uri: &str) -> Result<Value, RpcError> {
        self.request("resources/read", json!({ "uri": uri }))
    }

    /// The text of a resource that has one content.
    pub fn text(&mut self, uri: &str) -> String {
        text_of(&self.sole_content(uri)["text"])
    }

    /// The bytes of a binary resource that has one content.
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
            other => panic!("{uri} has not one content but {other}"),
        }
    }

    /// Puts a message where it belongs; an answer to nothing, or a second one, is a failure.
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

/// Who these clients say they are.
fn identity() -> Value {
    json!({ "name": "belljar-tests", "version": env!("CARGO_PKG_VERSION") })
}

/// Takes an answer apart; both or neither of result and error is a failure.
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
