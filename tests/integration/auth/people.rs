//! Two people with API keys, for the rows about leaks between principals: `alice` and `bob` see a part of the mount
//! `notes` each, and a shared part. Only `bob` sees the mount `vault`.

use belljar_tests::http::Http;
use belljar_tests::{Client, Era, Events, Response, Site};
use serde_json::{Value, json};

use crate::cases::new_key;
use crate::expect::cut;
use crate::row::{Guest, Row, RunMode, bare};
use crate::running_site::{RowContext, WITNESS_KEY};

/// The rules. The witness sees everything.
pub(crate) const RULES: &str = r#"[auth]
keys = "keys.toml"
[[allow]]
who = { key = "witness" }
[[allow]]
who = { key = "alice" }
what = ["belljar://notes/alice/**", "belljar://notes/shared/**"]
[[allow]]
who = { key = "bob" }
what = ["belljar://notes/bob/**", "belljar://notes/shared/**", "belljar://vault/**"]
"#;

/// A word in the file of bob.
pub(crate) const SECRET_WORD: &str = "zanzibar";

/// A mount that only bob sees, and a name of the same length that no mount has. Errors may repeat either, as the request
/// named it.
const HIDDEN_MOUNT: &str = "vault";
const ABSENT_MOUNT: &str = "vapor";

/// A row with both people, and the mounts `notes` (the real provider `files`) and `vault` (the hostile guest).
pub(crate) fn row(attack: &'static str) -> Row {
    bare("MCP-33", attack)
        .mount("=notes", Guest::Built("files"))
        .config("search = true\nfs = { \"/\" = \"notes\" }")
        .mount("=vault", Guest::Built("guest_hostile"))
        .config("env = { HOSTILE_TEMPLATES = \"verbs\" }")
        .prepare(prepare)
        .settings(&format!("[watch]\npoll = \"100ms\"\n{RULES}"))
        .run_mode(RunMode::Http)
        .keeps(64)
}

/// Writes the files and the keys.
pub(crate) fn prepare(site: &Site) {
    site.write("notes/alice/plan.md", "# Plan of alice\nlisbon\n");
    site.write("notes/bob/plan.md", format!("# Plan of bob\n{SECRET_WORD}\n"));
    site.write("notes/shared/plan.md", "# Plan of all\nparis\n");
    let witness = new_key(site, "witness");
    site.write(WITNESS_KEY, format!("Bearer {witness}"));
    for name in ["alice", "bob"] {
        let key = new_key(site, name);
        site.write(format!("{name}.key"), key);
    }
}

/// One of the people, at the server of a row.
pub(crate) struct Person<'a> {
    context: &'a RowContext<'a>,
    authorization: String,
}

impl<'a> Person<'a> {
    pub(crate) fn new(context: &'a RowContext<'a>, name: &str) -> Person<'a> {
        let key = std::fs::read_to_string(context.site().path(format!("{name}.key"))).expect("a key");
        Person { context, authorization: format!("Bearer {key}") }
    }

    /// A transport with the key, which has sent nothing.
    pub(crate) fn wire(&self, era: Era) -> Http {
        let mut wire = self.context.server().wire(era);
        wire.authorization = Some(self.authorization.clone());
        wire
    }

    /// An initialized client.
    pub(crate) fn client(&self, era: Era) -> Client<Http> {
        Client::connect(self.wire(era), era)
    }

    /// Sends a request without a session, always with the same id. Returns the whole answer.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Response {
        let message = Era::Stateless.message(7, method, params);
        self.context.server().post(&self.wire(Era::Stateless).headers(&message), &message)
    }

    /// Reads a URI.
    pub(crate) fn read(&self, uri: &str) -> Response {
        self.ask("resources/read", json!({ "uri": uri }))
    }

    /// Calls a tool.
    pub(crate) fn tool(&self, name: &str, arguments: Value) -> Response {
        self.ask("tools/call", json!({ "name": name, "arguments": arguments }))
    }

    /// Completes the variable of a template.
    pub(crate) fn complete(&self, template: &str, variable: &str, value: &str) -> Response {
        let to = json!({ "type": "ref/resource", "uri": template });
        self.ask("completion/complete", json!({ "ref": to, "argument": { "name": variable, "value": value } }))
    }

    /// Opens a stream for these URIs and for changes of lists.
    pub(crate) fn listen(&self, uris: &[&str]) -> Result<Events, Response> {
        let wanted = json!({ "resourceSubscriptions": uris, "resourcesListChanged": true });
        let message = Era::Stateless.message(7, "subscriptions/listen", json!({ "notifications": wanted }));
        self.wire(Era::Stateless).open(&message)
    }
}

/// Asserts that an answer about something hidden is the same as about something that is not there, except for the names in
/// the requests: the status, each header and each byte of the body.
pub(crate) fn assert_same(what: &str, (hidden, its_name): (&Response, &str), (absent, other): (&Response, &str)) {
    let shown = |answer: &Response, name: &str| {
        let headers: Vec<_> =
            answer.headers.iter().filter(|(name, _)| !["date", "content-length"].contains(&name.as_str())).collect();
        normal(&format!("HTTP {} {headers:?} {}", answer.status, answer.text()), name)
    };
    let (hidden, absent) = (shown(hidden, its_name), shown(absent, other));
    assert_eq!(cut(&hidden), cut(&absent), "{what}: \"{its_name}\" differs from \"{other}\", which is not there");
    assert_eq!(hidden, absent, "{what}: \"{its_name}\" differs from \"{other}\", which is not there");
}

/// `text` with a placeholder for `name`, and with the same mount whether the request named the hidden or the absent one.
pub(crate) fn normal(text: &str, name: &str) -> String {
    text.replace(name, "NAME").replace(ABSENT_MOUNT, HIDDEN_MOUNT)
}

/// Asserts that no text of `answer` is about what only bob sees. `asked` is what the request itself named.
pub(crate) fn assert_nothing_of_bob(what: &str, answer: &str, asked: &str) {
    for word in [HIDDEN_MOUNT, "bob", SECRET_WORD, "guest_hostile"].into_iter().filter(|word| !asked.contains(word)) {
        assert!(!answer.contains(word), "{what}: alice gets \"{word}\": {}", cut(answer));
    }
}
