//! Tests of what a shim remembers.

use serde_json::{Value, json};

use super::*;

/// A client, a conversation, and the lines that each side got.
#[derive(Default)]
struct Dialogue(Conversation);

impl Dialogue {
    /// What belljar gets when the client sends this.
    fn client(&mut self, message: &Value) -> Option<Value> {
        let line = message.to_string();
        self.0.note_client(line.as_bytes()).map(|line| serde_json::from_slice(&line).unwrap())
    }

    /// What the client gets when belljar sends this.
    fn server(&mut self, message: &Value) -> Option<Value> {
        // As belljar writes it.
        let mut line = r#"{"jsonrpc":"2.0","#.to_owned();
        for name in ["id", "method", "params", "result", "error"] {
            if let Some(value) = message.get(name) {
                line.push_str(&format!("\"{name}\":{value},"));
            }
        }
        let line = format!("{}}}", line.trim_end_matches(','));
        self.0.note_server(line.as_bytes()).map(|line| serde_json::from_slice(&line).unwrap())
    }

    fn lost(&mut self) -> Vec<Value> {
        parsed(self.0.lost())
    }

    fn resend(&mut self) -> Vec<Value> {
        parsed(self.0.resend())
    }

    /// A conversation whose session is open.
    fn in_session() -> Self {
        let mut dialogue = Self::default();
        let open =
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "clientInfo": { "name": "c" } } });
        assert_eq!(dialogue.client(&open), Some(open));
        assert!(dialogue.server(&json!({ "id": 0, "result": {} })).is_some());
        dialogue.client(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        dialogue
    }
}

fn parsed(lines: Vec<Vec<u8>>) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn read(id: impl Into<Value>) -> Value {
    request(id, "resources/read", json!({ "uri": "belljar://notes/a" }))
}

#[test]
fn an_unanswered_request_is_sent_again_and_an_answered_one_is_not() {
    let mut dialogue = Dialogue::default();
    for id in [json!(1), json!("b"), json!("\u{e9}\"")] {
        dialogue.client(&read(id));
    }
    assert!(dialogue.server(&json!({ "id": 1, "result": {} })).is_some());
    assert!(dialogue.server(&json!({ "id": "\u{e9}\"", "error": { "code": -32602, "message": "no" } })).is_some());
    assert_eq!(dialogue.lost(), Vec::<Value>::new());
    assert_eq!(dialogue.resend(), [read("b")]);
    assert!(dialogue.server(&json!({ "id": "b", "result": {} })).is_some());
    dialogue.lost();
    assert_eq!(dialogue.resend(), Vec::<Value>::new());
}

#[test]
fn a_request_that_ends_every_belljar_is_given_up() {
    for (serves, most) in [(true, 3), (false, 6)] {
        let mut dialogue = Dialogue::default();
        dialogue.client(&read(1));
        for _ in 1..most {
            if serves {
                dialogue.server(&json!({ "method": "notifications/resources/list_changed" }));
            }
            assert_eq!(dialogue.lost(), Vec::<Value>::new());
            assert_eq!(dialogue.resend(), [read(1)]);
        }
        if serves {
            dialogue.server(&json!({ "method": "notifications/resources/list_changed" }));
        }
        let given_up = dialogue.lost();
        assert_eq!((&given_up[0]["id"], &given_up[0]["error"]["data"]["kind"]), (&json!(1), &json!("unavailable")));
        assert!(given_up[0]["error"]["message"].as_str().unwrap().contains("again and again"), "{given_up:?}");
        assert_eq!(dialogue.resend(), Vec::<Value>::new());
    }
}

/// Each belljar acknowledges it.
#[test]
fn a_listen_is_never_given_up() {
    let mut dialogue = Dialogue::default();
    dialogue.client(&request(7, "subscriptions/listen", json!({ "notifications": {} })));
    for _ in 0..9 {
        dialogue.server(&json!({ "method": "notifications/subscriptions/acknowledged", "params": { "_meta": { SUBSCRIPTION_ID: 7 } } }));
        assert_eq!(dialogue.lost(), Vec::<Value>::new());
        assert_eq!(dialogue.resend().len(), 1);
    }
}

#[test]
fn a_call_of_a_providers_tool_is_not_repeated() {
    let call = |id: u64, name: &str| request(id, "tools/call", json!({ "name": name, "arguments": {} }));
    let mut dialogue = Dialogue::default();
    dialogue.client(&call(1, "notes_delete"));
    dialogue.client(&call(2, "read_resource"));
    dialogue.client(&request(3, "tools/call", json!({})));
    let lost = dialogue.lost();
    assert_eq!(lost.iter().map(|line| line["id"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    assert!(lost[0]["error"]["message"].as_str().unwrap().contains("may have had its effect"), "{lost:?}");
    assert_eq!(dialogue.resend(), [call(2, "read_resource")]);
}

#[test]
fn a_cancelled_request_is_forgotten() {
    let mut dialogue = Dialogue::default();
    dialogue.client(&read(1));
    dialogue.client(&read("x"));
    for id in [json!(1), json!("x")] {
        dialogue
            .client(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
    }
    dialogue.lost();
    assert_eq!(dialogue.resend(), Vec::<Value>::new());
}

#[test]
fn a_session_is_opened_again_with_its_level_and_subscriptions() {
    let mut dialogue = Dialogue::in_session();
    for (id, method, uri) in [(1, "subscribe", "a"), (2, "subscribe", "b"), (3, "unsubscribe", "a")] {
        dialogue.client(&request(id, &format!("resources/{method}"), json!({ "uri": uri })));
        dialogue.server(&json!({ "id": id, "result": {} }));
    }
    dialogue.client(&request(4, "logging/setLevel", json!({ "level": "info" })));
    dialogue.server(&json!({ "id": 4, "result": {} }));
    dialogue.lost();
    let opening = dialogue.0.opening().unwrap();
    let initialize: Value = serde_json::from_slice(&opening.initialize).unwrap();
    assert_eq!(
        (&initialize["method"], &initialize["params"]["clientInfo"]["name"]),
        (&json!("initialize"), &json!("c"))
    );
    assert!(opening.initialized.is_some());
    let again = dialogue.resend();
    let methods: Vec<_> = again.iter().map(|line| line["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["logging/setLevel", "resources/subscribe", "ping"]);
    assert_eq!(again[1]["params"]["uri"], "b");
    // The client asked none of this. It gets the news when the new belljar watches.
    assert_eq!(dialogue.server(&json!({ "id": initialize["id"], "result": {} })), None);
    assert_eq!(dialogue.server(&json!({ "id": again[0]["id"], "error": { "code": 1, "message": "m" } })), None);
    let news = |dialogue: &mut Dialogue, of: &Value| {
        let line = json!({ "jsonrpc": "2.0", "id": of["id"], "result": {} }).to_string();
        let lines = dialogue.0.note_server(line.as_bytes()).unwrap().into_owned();
        parsed(lines.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect())
    };
    let updated = news(&mut dialogue, &again[1]);
    assert_eq!((updated.len(), &updated[0]["params"]["uri"]), (1, &json!("b")));
    let lists = news(&mut dialogue, &again[2]);
    assert!(lists.len() == 3 && lists.iter().all(|line| line["method"].as_str().unwrap().ends_with("list_changed")));
}

#[test]
fn an_unanswered_initialize_is_sent_again_first() {
    let mut dialogue = Dialogue::default();
    dialogue.client(&read(1));
    let open = request(2, "initialize", json!({}));
    dialogue.client(&open);
    dialogue.lost();
    assert_eq!(dialogue.0.opening(), None);
    assert_eq!(dialogue.resend(), [open, read(1)]);
    assert!(dialogue.server(&json!({ "id": 2, "result": {} })).is_some());
}

#[test]
fn a_listen_lasts_longer_than_its_belljar() {
    let listen = request(
        7,
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["u"] } }),
    );
    let mut dialogue = Dialogue::default();
    dialogue.client(&listen);
    let acknowledged =
        json!({ "method": "notifications/subscriptions/acknowledged", "params": { "_meta": { SUBSCRIPTION_ID: 7 } } });
    assert!(dialogue.server(&acknowledged).is_some());
    assert_eq!(dialogue.server(&json!({ "id": 7, "result": {} })), None, "belljar ends, and not the subscription");
    dialogue.lost();
    assert_eq!(dialogue.resend(), std::slice::from_ref(&listen));
    let line = format!("{{\"method\":{},\"params\":{}}}", acknowledged["method"], acknowledged["params"]);
    let news = dialogue.0.note_server(line.as_bytes()).unwrap().into_owned();
    let news = parsed(news.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect());
    let of = |line: &Value| (line["method"].clone(), line["params"]["_meta"][SUBSCRIPTION_ID].clone());
    assert_eq!(
        news.iter().map(of).collect::<Vec<_>>(),
        [(json!("notifications/tools/list_changed"), json!(7)), (json!("notifications/resources/updated"), json!(7))]
    );
    // A refusal ends it.
    assert!(dialogue.server(&json!({ "id": 7, "error": { "code": 1, "message": "too many" } })).is_some());
    dialogue.lost();
    assert_eq!(dialogue.resend(), Vec::<Value>::new());
}

#[test]
fn the_error_of_a_shutdown_is_for_the_shim() {
    let message = format!("unavailable: {SHUTTING_DOWN}");
    let stopped = json!({ "code": -32603, "message": message, "data": { "kind": "unavailable" } });
    let mut dialogue = Dialogue::default();
    dialogue.client(&read(1));
    assert_eq!(dialogue.server(&json!({ "id": 1, "error": stopped })), None);
    dialogue.lost();
    assert_eq!(dialogue.resend(), [read(1)]);
    // A provider can say the same words. Its error names the mount.
    let mut of_provider = stopped.clone();
    of_provider["data"]["mount"] = json!("notes");
    assert!(dialogue.server(&json!({ "id": 1, "error": of_provider })).is_some());
    // A call may have had an effect.
    dialogue.client(&request(2, "tools/call", json!({ "name": "notes_delete" })));
    assert!(dialogue.server(&json!({ "id": 2, "error": stopped })).is_some());
}

#[test]
fn a_question_of_an_ended_belljar_is_withdrawn_and_its_answer_goes_to_no_other() {
    let question = json!({ "id": 3, "method": "elicitation/create", "params": { "message": "allow?" } });
    let mut dialogue = Dialogue::in_session();
    let first = dialogue.server(&question).unwrap();
    assert_ne!(first["id"], 3);
    let withdrawn = dialogue.lost();
    assert_eq!(
        (&withdrawn[0]["method"], &withdrawn[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &first["id"])
    );
    let second = dialogue.server(&question).unwrap();
    let answer = |id: &Value| json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept" } });
    assert_eq!(dialogue.client(&answer(&first["id"])), None, "it was an answer to the first belljar");
    assert_eq!(dialogue.client(&answer(&json!(3))), None, "the client never saw this id");
    assert_eq!(dialogue.client(&answer(&second["id"])), Some(answer(&json!(3))));
    assert_eq!(dialogue.client(&answer(&second["id"])), None, "a second answer");
}

#[test]
fn without_a_belljar_each_request_gets_an_error() {
    let mut dialogue = Dialogue::default();
    dialogue.client(&read(1));
    dialogue.client(&read("a"));
    dialogue.lost();
    let errors = parsed(dialogue.0.give_up("belljar was stopped"));
    assert_eq!(errors.iter().map(|line| line["id"].clone()).collect::<Vec<_>>(), [json!("a"), json!(1)]);
    assert_eq!(dialogue.resend(), Vec::<Value>::new());
}

#[test]
fn what_is_no_message_passes_as_it_is() {
    let mut conversation = Conversation::default();
    for line in ["nonsense", "[]", "{}", "{\"id\":null}"] {
        assert_eq!(conversation.note_client(line.as_bytes()).as_deref(), Some(line.as_bytes()), "{line}");
        assert_eq!(conversation.note_server(line.as_bytes()).as_deref(), Some(line.as_bytes()), "{line}");
    }
    assert!(conversation.lost().is_empty());
}
