//! What a shim remembers of the messages between a client and belljar, so that another belljar can go on where one
//! ended. Pure: reads and writes nothing.
//!
//! * A request that was not answered is sent again. A call of a provider's tool is not: it may have had an effect.
//! * A session is opened again: the client's `initialize`, its log level and its subscriptions.
//! * The client is told that watched resources and lists may have changed meanwhile.
//! * belljar's own questions have other ids at the client. So no client answers a question of an ended belljar to the
//!   next one.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::head::{Head, OWN_ID, answered_id};

/// The message of requests that a belljar refuses while it ends.
pub const SHUTTING_DOWN: &str = "belljar is shutting down; ask again once it serves";

/// belljar's own tools. They only read, so their calls can be sent again.
pub const READING_TOOLS: [&str; 3] = ["list_resources", "read_resource", "search_resources"];

/// The failures after which a request is given up: three belljars that ended although they had served this client, or six that
/// ended before. The request may be what ends them.
const MAX_FAILURES: u8 = 6;

/// The weight of a belljar that had sent something.
const SERVED: u8 = 2;

/// The weight of a belljar that had sent nothing. A connection to one that is just ending looks like this.
const SILENT: u8 = 1;

/// The beginning of the ids of belljar's questions, as the client sees them.
const QUESTION: &str = "belljar-";

/// The beginning of the ids of the shim's own requests, as belljar sees them.
const SHIM: &str = "belljar-shim-";

/// Why a call is not repeated.
const UNCERTAIN: &str = "belljar ended while this call ran, and started again; the call may have had its effect: look before you call again";

/// Why a request is no longer repeated.
const TOO_OFTEN: &str =
    "belljar ended again and again while it answered this request; its log has the reason: belljar status";

/// A request without an answer.
struct PendingRequest {
    line: Vec<u8>,
    kind: RequestKind,
    /// The weights of the belljars that ended before they answered it.
    failures: u8,
}

/// An answer of belljar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Result,
    /// The error that says that belljar is shutting down.
    Stopped,
    /// Any other error.
    Error,
}

/// How to go on with a request if belljar ends before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestKind {
    /// Can be sent again.
    Repeatable,
    /// Can be sent again. Its answer comes when the client cancels it, or when belljar ends.
    Listen,
    /// Opens the session.
    Initialize,
    /// May have had an effect.
    Once,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Conversation {
    pending: BTreeMap<String, PendingRequest>,
    /// The request that opened the session.
    initialize: Option<Vec<u8>>,
    /// The notification that the client is ready.
    initialized: Option<Vec<u8>>,
    /// The last request for a log level.
    log_level: Option<Vec<u8>>,
    /// The URIs of `resources/subscribe`.
    subscribed: BTreeSet<String>,
    /// The number of belljars before this one.
    generation: u32,
    /// The ids of the questions of this belljar that the client has not answered.
    questions: BTreeSet<String>,
    /// The `listen` requests that were sent again and are not acknowledged yet.
    reopened: BTreeSet<String>,
    /// True if this belljar has sent a line.
    has_served: bool,
    /// What the client gets when the request with this id is answered: notifications of changes. They come after the
    /// watching has begun again, so that no later change is missed.
    news: BTreeMap<String, Vec<Vec<u8>>>,
}

/// What opens the session of a client at a new belljar.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The request. Its answer is for the shim, and must come before anything else is sent.
    pub(crate) initialize: Vec<u8>,
    /// The notification that follows the answer, if the client has sent one.
    pub(crate) initialized: Option<Vec<u8>>,
}

impl Conversation {
    /// Notes a line of the client. Returns the line for belljar, or `None` if it is for no belljar that runs.
    pub(crate) fn note_client<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        let Some(head) = Head::parse(line) else { return Some(Cow::Borrowed(line)) };
        match (&head.method, head.id()) {
            (Some(method), Some(id)) => {
                let kind = self.note_request(method, &head, line);
                // belljar refuses a second request with the same id. The first one is still to be answered.
                let request = PendingRequest { line: line.to_vec(), kind, failures: 0 };
                self.pending.entry(id).or_insert(request);
                Some(Cow::Borrowed(line))
            }
            (Some(method), None) => {
                match method.as_ref() {
                    "notifications/initialized" => self.initialized = Some(line.to_vec()),
                    "notifications/cancelled" => {
                        let id = head.params.and_then(|params| cancelled_id(params.get()));
                        id.into_iter().for_each(|id| {
                            self.pending.remove(&id);
                        });
                    }
                    _ => {}
                }
                Some(Cow::Borrowed(line))
            }
            (None, Some(id)) => self.answer(&id, line).map(Cow::Owned),
            (None, None) => Some(Cow::Borrowed(line)),
        }
    }

    /// Notes what a request changes. Returns its kind.
    fn note_request(&mut self, method: &str, head: &Head<'_>, line: &[u8]) -> RequestKind {
        let member = |name: &str| {
            let params: Value = serde_json::from_str(head.params?.get()).ok()?;
            params.get(name)?.as_str().map(str::to_owned)
        };
        match method {
            "initialize" => {
                self.initialize = Some(line.to_vec());
                return RequestKind::Initialize;
            }
            "logging/setLevel" => self.log_level = Some(line.to_vec()),
            "resources/subscribe" => self.subscribed.extend(member("uri")),
            "resources/unsubscribe" => {
                member("uri").into_iter().for_each(|uri| {
                    self.subscribed.remove(&uri);
                });
            }
            "subscriptions/listen" => return RequestKind::Listen,
            "tools/call" if !member("name").is_some_and(|name| READING_TOOLS.contains(&name.as_str())) => {
                return RequestKind::Once;
            }
            _ => {}
        }
        RequestKind::Repeatable
    }

    /// The client's answer to a question, for the belljar that asked. `None` if that one has ended.
    fn answer(&mut self, id: &str, line: &[u8]) -> Option<Vec<u8>> {
        let asked: String = serde_json::from_str(id).ok()?;
        let (generation, id) = asked.strip_prefix(QUESTION)?.split_once('-')?;
        if generation.parse() != Ok(self.generation) || !self.questions.remove(id) {
            return None;
        }
        with_id(line, serde_json::from_str(id).ok()?)
    }

    /// Notes a line of belljar. Returns the line for the client, or `None` if it is not for the client.
    pub(crate) fn note_server<'a>(&mut self, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        self.has_served = true;
        if let Some(id) = answered_id(line) {
            return self.answered(&id, Answer::Result, line);
        }
        let Some(head) = Head::parse(line) else { return Some(Cow::Borrowed(line)) };
        match (&head.method, head.id()) {
            (Some(_), Some(id)) => {
                let asked = format!("{QUESTION}{}-{id}", self.generation);
                self.questions.insert(id);
                with_id(line, asked.into()).map(Cow::Owned)
            }
            (None, Some(id)) => {
                let answer = match head.error {
                    None => Answer::Result,
                    Some(error) if is_shutting_down(error.get()) => Answer::Stopped,
                    Some(_) => Answer::Error,
                };
                self.answered(&id, answer, line)
            }
            (Some(method), None) if method == "notifications/subscriptions/acknowledged" => {
                let id = head.params.and_then(|params| subscription_id(params.get()));
                match id.filter(|id| self.reopened.remove(id)) {
                    // The client has an acknowledgement already.
                    Some(id) => {
                        self.pending.get_mut(&id).into_iter().for_each(|request| request.failures = 0);
                        self.take_news(&id)
                    }
                    None => Some(Cow::Borrowed(line)),
                }
            }
            _ => Some(Cow::Borrowed(line)),
        }
    }

    /// Notes that belljar wrote the answer of the request `id` to the client itself.
    pub(crate) fn note_written(&mut self, id: &str) {
        self.has_served = true;
        self.pending.remove(id);
    }

    /// Notes an answer. Returns it, if it is for the client. For an answer to the shim, returns what the client is to know
    /// now.
    fn answered<'a>(&mut self, id: &str, answer: Answer, line: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        if id.starts_with(OWN_ID) {
            return self.take_news(id);
        }
        let is_kept = match self.pending.get(id).map(|request| request.kind) {
            // A result before the client cancels it comes from the end of belljar.
            Some(RequestKind::Listen) => answer != Answer::Error,
            Some(RequestKind::Repeatable | RequestKind::Initialize) => answer == Answer::Stopped,
            Some(RequestKind::Once) | None => false,
        };
        if is_kept {
            return None;
        }
        self.pending.remove(id);
        Some(Cow::Borrowed(line))
    }

    /// The lines that the client gets now that this request was answered.
    fn take_news(&mut self, id: &str) -> Option<Cow<'static, [u8]>> {
        let lines = self.news.remove(id).filter(|lines| !lines.is_empty())?;
        Some(Cow::Owned(lines.join(&b'\n')))
    }

    /// Notes that belljar has ended. Returns lines for the client: the errors of requests that are not sent again, and the
    /// end of belljar's questions.
    pub(crate) fn lost(&mut self) -> Vec<Vec<u8>> {
        let mut lines: Vec<Vec<u8>> =
            std::mem::take(&mut self.questions).iter().map(|id| withdrawn(self.generation, id)).collect();
        self.generation += 1;
        self.reopened.clear();
        self.news.clear();
        let weight = if std::mem::take(&mut self.has_served) { SERVED } else { SILENT };
        self.pending.values_mut().for_each(|request| request.failures = request.failures.saturating_add(weight));
        let given_up = |request: &PendingRequest| match request.kind {
            RequestKind::Once => Some(UNCERTAIN),
            _ if request.failures >= MAX_FAILURES => Some(TOO_OFTEN),
            _ => None,
        };
        self.pending.retain(|id, request| {
            let why = given_up(request);
            lines.extend(why.map(|why| refusal(id, why)));
            why.is_none()
        });
        lines
    }

    /// Answers every pending request with an error, because no belljar serves.
    pub(crate) fn give_up(&mut self, why: &str) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.pending).keys().map(|id| refusal(id, why)).collect()
    }

    /// How to open the session of the client at the next belljar. `None` if the client has none.
    pub(crate) fn opening(&self) -> Option<Opening> {
        let is_unanswered = self.pending.values().any(|one| one.kind == RequestKind::Initialize);
        let initialize = self.initialize.as_deref().filter(|_| !is_unanswered)?;
        let initialize = with_id(initialize, format!("{SHIM}open").into())?;
        Some(Opening { initialize, initialized: self.initialized.clone() })
    }

    /// What the next belljar gets after the opening, to go on where the last one ended. Answers to the shim's own requests
    /// are not for the client.
    pub(crate) fn resend(&mut self) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let is_first = |one: &PendingRequest| one.kind == RequestKind::Initialize;
        if self.initialize.is_some() && !self.pending.values().any(is_first) {
            lines.extend(self.log_level.as_deref().and_then(|line| with_id(line, format!("{SHIM}level").into())));
            let mut own = |id: String, method: &str, params: Value, news: Vec<Vec<u8>>| {
                let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                lines.push(request.to_string().into_bytes());
                self.news.insert(Value::from(id).to_string(), news);
            };
            for (number, uri) in self.subscribed.iter().enumerate() {
                let news = changes(&[false; 3], [uri.as_str()], None);
                own(format!("{SHIM}{number}"), "resources/subscribe", json!({ "uri": uri }), news);
            }
            if self.initialized.is_some() {
                own(format!("{SHIM}lists"), "ping", json!({}), changes(&[true; 3], [], None));
            }
        }
        let mut pending: Vec<_> = self.pending.iter().collect();
        pending.sort_by_key(|(_, request)| !is_first(request));
        for (id, request) in pending {
            if request.kind == RequestKind::Listen {
                self.reopened.insert(id.clone());
                self.news.insert(id.clone(), changes_of_listen(id, &request.line));
            }
            lines.push(request.line.clone());
        }
        lines
    }
}

/// The notifications that everything changed that this `listen` asks for.
fn changes_of_listen(id: &str, line: &[u8]) -> Vec<Vec<u8>> {
    let head = Head::parse(line);
    let params = head.and_then(|head| serde_json::from_str::<Value>(head.params?.get()).ok()).unwrap_or_default();
    let wanted = params.get("notifications");
    let member = |name: &str| wanted.and_then(|wanted| wanted.get(name));
    let lists = LISTS.map(|(_, name)| member(name) == Some(&Value::Bool(true)));
    let watched = member("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
    changes(&lists, watched.filter_map(Value::as_str), serde_json::from_str(id).ok())
}

/// The kinds of lists: the notification of a change, and the name with which a `listen` asks for it.
const LISTS: [(&str, &str); 3] = [
    ("notifications/resources/list_changed", "resourcesListChanged"),
    ("notifications/tools/list_changed", "toolsListChanged"),
    ("notifications/prompts/list_changed", "promptsListChanged"),
];

/// The notifications that these lists and resources changed. `subscription`: the id of the `listen` that asked for them.
fn changes<'a>(
    lists: &[bool; 3],
    watched: impl IntoIterator<Item = &'a str>,
    subscription: Option<Value>,
) -> Vec<Vec<u8>> {
    let line = |method: &str, mut params: serde_json::Map<String, Value>| {
        if let Some(id) = &subscription {
            params.insert("_meta".to_owned(), json!({ SUBSCRIPTION_ID: id }));
        }
        json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into_bytes()
    };
    let changed = LISTS.iter().zip(lists).filter(|(_, is_wanted)| **is_wanted);
    let changed = changed.map(|((method, _), _)| line(method, serde_json::Map::new()));
    let updated = watched.into_iter().map(|uri| {
        line("notifications/resources/updated", serde_json::Map::from_iter([("uri".to_owned(), uri.into())]))
    });
    changed.chain(updated).collect()
}

/// The member of `_meta` that names the `listen` of a notification (MCP 2026-07-28, subscriptions).
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The `listen` of a notification.
fn subscription_id(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    Some(params.get("_meta")?.get(SUBSCRIPTION_ID)?.to_string())
}

/// The request that a notification cancels.
fn cancelled_id(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    Some(params.get("requestId")?.to_string())
}

/// The message with another id.
fn with_id(line: &[u8], id: Value) -> Option<Vec<u8>> {
    let mut message: serde_json::Map<String, Value> = serde_json::from_slice(line).ok()?;
    message.insert("id".to_owned(), id);
    serde_json::to_vec(&message).ok()
}

/// The error of a request with this id, as JSON, that cannot be served now.
pub fn refusal(id: &str, why: &str) -> Vec<u8> {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    let error = json!({ "code": -32603, "message": format!("unavailable: {why}"), "data": { "kind": "unavailable" } });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

/// True if this JSON text is the error of a belljar that ends. No provider can make one: its errors name a mount.
pub fn is_shutting_down(error: &str) -> bool {
    let Ok(error) = serde_json::from_str::<Value>(error) else { return false };
    let is_of_mount = error.get("data").is_some_and(|data| data.get("mount").is_some());
    let message =
        error.get("message").and_then(Value::as_str).and_then(|message| message.strip_prefix("unavailable: "));
    !is_of_mount && message == Some(SHUTTING_DOWN)
}

/// The notification that a question needs no answer any more.
fn withdrawn(generation: u32, id: &str) -> Vec<u8> {
    let params =
        json!({ "requestId": format!("{QUESTION}{generation}-{id}"), "reason": "the belljar that asked has ended" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string().into_bytes()
}

#[cfg(test)]
mod tests;
