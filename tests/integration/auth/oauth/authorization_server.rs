//! A real authorization server on loopback: `tests/clients/node/authorization_server.mjs`, which runs npm's `oidc-provider`.
//!
//! The program gets one JSON request as its argument:
//!
//! ```json
//! {"resource": "http://127.0.0.1:1/mcp", "scopes": ["clock:read"], "refused": [], "opaque": false, "account": "alice"}
//! ```
//!
//! It issues access tokens for the one `resource`, with the requested ones of these `scopes`. The person refuses the scopes
//! `refused`. The tokens are JWTs (RFC 9068, ES256), or opaque. There are two accounts: `alice`, in the groups `staff` and
//! `oncall`, and `bob`, in the group `staff`. The claim `groups` names them.
//!
//! The program prints one line when it listens: `issuer`, `jwks` and `introspection` (URLs), `registered` (id, secret and issuer
//! of a client that registered before), `document` (the URL of the metadata document of a client that need not register), and
//! `resource_server` (id and secret for introspection). It ends when its input ends.
//!
//! Only tests use the endpoints below `/test/`. Each takes and returns JSON:
//!  - `rotate`: makes a new signing key. With `keep`, the key set keeps the old keys.
//!  - `jwks`: answers requests for the key set with `status`, `headers`, `body`, that many spaces in `bytes`, and after `delay`
//!    milliseconds. `{}`: with the key set.
//!  - `token`: mints a token with any `claims` and `header`; `key` names who signs it.
//!  - `counts`: the number of requests for each path.
//!  - `consents`: the client, the account and the scopes of each consent.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{ChildStdin, Command, Stdio as Pipe};
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use belljar_tests::{Process, Server, places, wait_until};
use serde_json::{Value, json};

/// The longest accepted time until the program listens.
const START: Duration = Duration::from_secs(60);

/// A running authorization server.
#[derive(Debug)]
pub(crate) struct AuthorizationServer {
    server: Server,
    /// The line that the program printed.
    description: Value,
    /// The program ends when its input ends.
    input: Mutex<Option<ChildStdin>>,
}

impl AuthorizationServer {
    /// Starts the program. `None` if this machine lacks Node.
    pub(crate) fn start(request: &Value) -> Option<AuthorizationServer> {
        Self::start_script("node/authorization_server.mjs", request)
    }

    /// The same, for another program of the same form.
    pub(crate) fn start_script(script: &str, request: &Value) -> Option<AuthorizationServer> {
        let mut command = Command::new(places::node()?);
        command.arg(places::client_script(script)).arg(request.to_string());
        command.stdin(Pipe::piped()).stdout(Pipe::piped());
        let mut process = Process::start(command);
        let (input, output) = process.pipes();
        let (tell, told) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            if matches!(BufReader::new(output).read_line(&mut line), Ok(1..)) {
                tell.send(line).ok();
            }
        });
        let line = told
            .recv_timeout(START)
            .unwrap_or_else(|_| panic!("the authorization server does not listen:\n{}", process.stderr()));
        let description: Value = serde_json::from_str(&line).unwrap();
        let issuer = description["issuer"].as_str().unwrap();
        let address = issuer.strip_prefix("http://").unwrap().parse().unwrap();
        Some(AuthorizationServer { server: Server::at(process, address), description, input: Mutex::new(Some(input)) })
    }

    /// The issuer, as in the claim `iss`.
    pub(crate) fn issuer(&self) -> &str {
        self.description["issuer"].as_str().unwrap()
    }

    /// The line that the program printed.
    pub(crate) fn description(&self) -> &Value {
        &self.description
    }

    /// Makes a new signing key. The key set keeps the old keys.
    pub(crate) fn add_key(&self) {
        self.call("rotate", &json!({ "keep": true }));
    }

    /// Makes a new signing key, and withdraws the old one.
    pub(crate) fn replace_key(&self) {
        self.call("rotate", &json!({ "keep": false }));
    }

    /// Ends the program. Returns when nobody listens at its address.
    pub(crate) fn end(&self) {
        drop(self.input.lock().unwrap().take());
        let address = self.server.address();
        wait_until("the end of the authorization server", || match TcpStream::connect(address) {
            Ok(_) => Err("it accepts connections".to_owned()),
            Err(_) => Ok(()),
        });
    }

    /// Answers requests for the key set with the key set again.
    pub(crate) fn mend_key_set(&self) {
        self.call("jwks", &json!({}));
    }

    /// Answers requests for the key set with this status.
    pub(crate) fn break_key_set(&self, status: u16) {
        self.call("jwks", &json!({ "status": status }));
    }

    /// Mints a token. `key`, `claims` and `header` differ from a usual token.
    pub(crate) fn mint(&self, difference: &Value) -> String {
        self.call("token", difference)["token"].as_str().unwrap().to_owned()
    }

    /// The number of requests for the key set so far.
    pub(crate) fn key_set_requests(&self) -> u64 {
        self.call("counts", &json!({}))["/jwks"].as_u64().unwrap_or(0)
    }

    /// Calls an endpoint for tests.
    pub(crate) fn call(&self, endpoint: &str, body: &Value) -> Value {
        let answer = self.server.exchange("POST", &format!("/test/{endpoint}"), &[], body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{endpoint}: {}\n{}", answer.text(), self.server.process.stderr());
        answer.json()
    }
}
