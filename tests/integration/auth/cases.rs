//! The cases of the rows about credentials: one hostile request each, and the checks of its refusal. A row runs many
//! cases against one belljar. Each case comes from an address of its own, so that no case slows down another.

use belljar_tests::{Era, Response, Server, Site};
use serde_json::{Value, json};

use crate::expect::cut;
use crate::mint::{EC, ISSUER, OTHER, OTHER_ISSUER, RSA, URL, fingerprint, key_set};
use crate::oracle::health;
use crate::prove;
use crate::row::{Guest, Row, RunMode, bare};
use crate::running_site::{RowContext, WITNESS_KEY};

/// The resource that each case tries to read. Its reads have the name of the case in the query of the URI.
const VERB: &str = "ok";

/// Bytes of a credential that must not occur together in an answer, in the log or in the record.
const TRACE: usize = 12;

/// One hostile request.
pub(crate) struct Case {
    /// What is wrong with the request, in words. Unique in its row.
    pub(crate) name: String,
    /// The target of the request line.
    target: String,
    /// Headers in addition to those of a good client.
    headers: Vec<(String, String)>,
    /// The secrets in the request.
    secrets: Vec<String>,
    /// The expected status.
    status: u16,
    /// The code of the error in `WWW-Authenticate`, if one is expected.
    error: Option<&'static str>,
}

impl Case {
    /// A request with these headers, which is refused with 401 and without an error code: it has no credential.
    pub(crate) fn new(name: impl Into<String>) -> Case {
        let (headers, secrets) = (Vec::new(), Vec::new());
        Case { name: name.into(), target: "/mcp".to_owned(), headers, secrets, status: 401, error: None }
    }

    /// A request with this credential, which is refused as `invalid_token`.
    pub(crate) fn bearer(name: impl Into<String>, credential: &str) -> Case {
        let case = Case::new(name).header("Authorization", &format!("Bearer {credential}")).secret(credential);
        Case { error: Some("invalid_token"), ..case }
    }

    /// Expects the status 400 and the error `invalid_request`.
    pub(crate) fn malformed(self) -> Case {
        Case { status: 400, error: Some("invalid_request"), ..self }
    }

    /// Expects another status, and no challenge.
    pub(crate) fn status(self, status: u16) -> Case {
        Case { status, error: None, ..self }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Case {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Names a secret of the request. Nothing of it may occur elsewhere.
    pub(crate) fn secret(mut self, secret: &str) -> Case {
        self.secrets.push(secret.to_owned());
        self
    }

    /// Sets the target of the request line.
    pub(crate) fn target(self, target: &str) -> Case {
        Case { target: target.to_owned(), ..self }
    }

    /// Sends the request of the case number `at`.
    pub(crate) fn send(&self, context: &RowContext<'_>, server: &Server, at: usize) -> Response {
        let uri = context.uri(&format!("{VERB}/{}", marker(at)));
        let message = Era::Stateless.message(at as u64, "resources/read", json!({ "uri": uri }));
        let mut headers: Vec<(&str, String)> = server.wire(Era::Stateless).headers(&message);
        if !self.headers.iter().any(|(name, _)| name == "X-Forwarded-For") {
            headers.push(("X-Forwarded-For", address(at)));
        }
        let mut all: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        all.extend(self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        server.exchange("POST", &self.target, &all, message.to_string().as_bytes())
    }

    /// Checks that the answer is a clean refusal. Returns what is wrong.
    fn check(&self, answer: &Response) -> Result<(), String> {
        let shown = || format!("HTTP {} {:?} {}", answer.status, answer.headers, cut(&answer.text()));
        if answer.status != self.status {
            return Err(format!("expected HTTP {}, and it is {}", self.status, shown()));
        }
        let challenge = answer.header("www-authenticate");
        if matches!(self.status, 400 | 401) {
            let challenge = challenge.ok_or_else(|| format!("no WWW-Authenticate: {}", shown()))?;
            let error = self.error.map(|code| format!("Bearer error=\"{code}\", error_description=\""));
            let is_right = match error {
                Some(begin) => challenge.starts_with(&begin),
                None => challenge.starts_with("Bearer ") && !challenge.contains("error"),
            };
            let clean = challenge.bytes().all(|byte| (0x20..0x7f).contains(&byte));
            if !is_right || !clean {
                return Err(format!("expected a challenge with {:?}: {challenge}", self.error));
            }
            let Ok(body) = serde_json::from_slice::<Value>(&answer.body) else {
                return Err(format!("no JSON: {}", shown()));
            };
            let is_error = body["error"]["data"]["kind"] == "unauthenticated" && body["error"]["code"] == -32600;
            if !is_error || !body["result"].is_null() {
                return Err(format!("no JSON-RPC error \"unauthenticated\": {}", shown()));
            }
        }
        let whole = format!("{:?} {}", answer.headers, answer.text());
        match self.trace_in(&whole) {
            Some(trace) => Err(format!("the answer has a part of the credential, \"{trace}\"")),
            None => Ok(()),
        }
    }

    /// A part of a secret of the request that `text` contains.
    fn trace_in(&self, text: &str) -> Option<String> {
        let parts = self.secrets.iter().flat_map(|secret| {
            let secret = secret.as_bytes();
            secret[..secret.len().min(4096)].windows(TRACE.min(secret.len().max(1)))
        });
        let text = text.as_bytes();
        let has = |part: &&[u8]| part.len() >= 8 && memchr_find(text, part);
        parts.step_by(5).find(has).map(|part| String::from_utf8_lossy(part).into_owned())
    }
}

/// True if `part` occurs in `text`.
fn memchr_find(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// The text in the URI of the case number `at`. It is in the record if the request was let in.
pub(crate) fn marker(at: usize) -> String {
    format!("attack-{at}-end")
}

/// The address that the proxy reports for the case number `at`.
fn address(at: usize) -> String {
    format!("203.0.{}.{}", at / 250, at % 250 + 1)
}

/// A row with `[auth]`: two issuers whose keys are in files, keys in `keys.toml`, and a proxy on loopback. `settings` come
/// first.
pub(crate) fn row(id: &'static str, attack: &'static str, settings: &str) -> Row {
    let serve = format!("[serve]\nurl = \"{URL}\"\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\n");
    let issuers = format!(
        "issuers = [{{ issuer = \"{ISSUER}\", jwks = \"jwks.json\" }}, {{ issuer = \"{OTHER_ISSUER}\", jwks = \"other.json\" }}]"
    );
    site_row(id, attack)
        .settings(&format!("{settings}{serve}[auth]\nkeys = \"keys.toml\"\n{issuers}"))
        .run_mode(RunMode::Http)
}

/// A row with the files of `[auth]`, and without settings.
pub(crate) fn site_row(id: &'static str, attack: &'static str) -> Row {
    bare(id, attack).mount("", Guest::Built("guest_hostile")).prepare(prepare).keeps(64)
}

/// Writes the key sets, and a key for the witness.
pub(crate) fn prepare(site: &Site) {
    site.write("jwks.json", key_set(&[&EC, &RSA]));
    site.write("other.json", key_set(&[&OTHER]));
    let key = new_key(site, "witness");
    site.write(WITNESS_KEY, format!("Bearer {key}"));
}

/// Makes a key with `belljar key new`.
pub(crate) fn new_key(site: &Site, name: &str) -> String {
    let output = site.run(&["key", "new", name, "--keys", "keys.toml"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Runs all cases against the server of the row. Each must be refused cleanly. Then nothing of a credential may be in the
/// log or in the record, no guest may have run for a case, and the witness must still be served.
///
/// With guards off, every case must be let in. Then this function panics, as for each successful attack.
pub(crate) fn run(context: &RowContext<'_>, cases: &[Case]) -> String {
    let server = context.server();
    let answers: Vec<Response> = cases.iter().enumerate().map(|(at, case)| case.send(context, server, at)).collect();
    let is_served = |answer: &Response| answer.status == 200 && answer.text().contains("\"contents\"");
    if prove::is_running() {
        let kept: Vec<&str> = cases
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| !is_served(answer))
            .map(|(case, _)| case.name.as_str())
            .collect();
        assert!(!kept.is_empty(), "{} of {} cases are let in", cases.len(), cases.len());
        return format!("still refused without the guard: {kept:?}");
    }
    let mut wrong: Vec<String> = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        wrong.extend(case.check(answer).err().map(|why| format!("{}: {why}", case.name)));
    }
    let records = context.records();
    let log = server.process.stderr();
    wrong.extend(health(&server.process));
    for (at, case) in cases.iter().enumerate() {
        for (place, text) in [("log", &log), ("record", &records)] {
            let trace = case.trace_in(text);
            wrong.extend(trace.map(|trace| format!("{}: the {place} has \"{trace}\" of the credential", case.name)));
        }
        if records.contains(&marker(at)) {
            wrong.push(format!("{}: the record names the resource, so the request was let in", case.name));
        }
        let is_hashed = case.error == Some("invalid_token");
        let digests = case.secrets.iter().filter(|_| is_hashed).map(|secret| fingerprint(secret));
        for digest in digests.filter(|digest| !records.contains(&format!("\"credential\":\"{digest}\""))) {
            wrong.push(format!("{}: the record has no refused credential \"{digest}\"", case.name));
        }
    }
    let witness = context.read_uri("belljar://witness/static-text");
    wrong.extend(witness.err().map(|error| format!("the witness: {error}")));
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    format!("{} cases refused: {}", cases.len(), names.join("; "))
}
