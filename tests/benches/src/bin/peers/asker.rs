//! The clients: they ask the same again and again, check that the answer is whole, and know whose process answers.

use std::collections::BTreeMap;

use belljar_tests::{Client, Era, Http, Kept, Server, Stdio};
use serde_json::{Value, json};

use crate::cases::{Case, Transport, What};
use crate::servers::{Kind, Place, Variant};

/// Servers that run, and whoever asks them.
pub(crate) struct Askers {
    pub(crate) place: Place,
    http: BTreeMap<(Kind, Variant), Server>,
    stdio: BTreeMap<(Kind, Variant, bool), Client<Stdio>>,
    /// What is asked over HTTP, by the title of the group.
    crowds: BTreeMap<(Kind, String), Vec<Asker>>,
}

/// One connection over HTTP, and the bytes of what is asked on it.
struct Asker {
    kept: Kept,
    request: Vec<u8>,
    /// Bytes of the answer's body, at least.
    least: usize,
}

impl Asker {
    fn ask(&mut self) {
        let response = self.kept.exchange(&self.request);
        let (status, size) = (response.status, response.body.len());
        assert!(status == 200 && size >= self.least, "HTTP {status}, {size} bytes");
    }
}

/// How a kind travels in a case: the server for files has nothing but stdio.
fn transport(kind: Kind, case: &Case) -> Transport {
    if kind == Kind::Filesystem { Transport::Stdio } else { case.transport }
}

impl Askers {
    pub(crate) fn new(place: Place) -> Askers {
        Askers { place, http: BTreeMap::new(), stdio: BTreeMap::new(), crowds: BTreeMap::new() }
    }

    /// Makes sure that the server runs, connects, and looks at one answer closely.
    pub(crate) fn prepare(&mut self, kind: Kind, case: &Case) {
        let variant = kind.variant(case);
        if transport(kind, case) == Transport::Stdio {
            let (era, place) = (case.era(kind), &self.place);
            let client = self
                .stdio
                .entry((kind, variant, case.is_older))
                .or_insert_with(|| Client::start(place.stdio(kind, variant), era));
            let (method, params) = asked(place, kind, case, 0);
            check(kind, case.what, &client.request(&method, params).expect("an answer"));
            return;
        }
        let place = &self.place;
        let server = self.http.entry((kind, variant)).or_insert_with(|| place.http(kind, variant));
        let crowd = (0..case.clients).map(|number| {
            let (method, params) = asked(place, kind, case, number);
            asker(server, kind, case, &method, &params)
        });
        let crowd = crowd.collect();
        self.crowds.insert((kind, case.title()), crowd);
    }

    /// Asks so many times, in all.
    pub(crate) fn ask(&mut self, kind: Kind, case: &Case, times: u32) {
        let each = times / case.clients;
        if transport(kind, case) == Transport::Http {
            let crowd = self.crowds.get_mut(&(kind, case.title())).expect("it was prepared");
            if let [alone] = crowd.as_mut_slice() {
                return (0..each).for_each(|_| alone.ask());
            }
            return std::thread::scope(|scope| {
                for asker in crowd {
                    scope.spawn(move || (0..each).for_each(|_| asker.ask()));
                }
            });
        }
        let questions: Vec<_> = (0..case.clients).map(|number| asked(&self.place, kind, case, number)).collect();
        let variant = kind.variant(case);
        let client = self.stdio.get_mut(&(kind, variant, case.is_older)).expect("it was prepared");
        for _ in 0..each {
            let sent: Vec<u64> = questions.iter().map(|(method, params)| client.send(method, params.clone())).collect();
            sent.into_iter().for_each(|id| drop(client.wait(id).expect("an answer")));
        }
    }

    /// The process that answers.
    pub(crate) fn pid(&self, kind: Kind, case: &Case) -> u32 {
        let variant = kind.variant(case);
        let process = match transport(kind, case) {
            Transport::Http => self.http.get(&(kind, variant)).map(|server| server.process.id()),
            Transport::Stdio => {
                self.stdio.get(&(kind, variant, case.is_older)).map(|client| client.wire_ref().process.id())
            }
        };
        process.expect("it was prepared")
    }

    /// Looks into belljar's records: every read must have been a run of the guest, in a sandbox of its own.
    pub(crate) fn judge(&self) {
        let records = self.place.site.audit();
        let reads: Vec<&Value> = records.iter().filter(|record| record["operation"] == "read").collect();
        let ran = |record: &&Value| record["usage"]["fuel"].as_u64().is_some_and(|fuel| fuel > 0);
        let others: Vec<_> = reads.iter().filter(|record| !ran(record)).collect();
        assert!(others.is_empty(), "{} reads ran no guest, the first: {}", others.len(), others[0]);
        println!("\n{} reads of belljar are on record, each of them a run of the guest.", reads.len());
    }
}

/// The method and the parameters of what a client asks.
fn asked(place: &Place, kind: Kind, case: &Case, client: u32) -> (String, Value) {
    let mut asked = kind.asked(case.what, client).expect("it has that");
    let params = if kind == Kind::Filesystem { place.tool_call() } else { asked["params"].take() };
    (asked["method"].as_str().expect("a method").to_owned(), params)
}

/// A client that has greeted, and looked at one answer.
fn asker(server: &Server, kind: Kind, case: &Case, method: &str, params: &Value) -> Asker {
    let era: Era = case.era(kind);
    let mut client: Client<Http> = Client::connect_silently(server.wire(era), era);
    let mut kept = Kept::to(server);
    let (greeting, said) = era.greeting();
    client.request(greeting, said).expect("a greeting");
    if era == Era::Older {
        // Not by the client, which is stricter than FastMCP: that calls an empty answer JSON.
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(kept.exchange(&server.request(client.wire(), &initialized)).status, 202);
    }
    check(kind, case.what, &client.request(method, params.clone()).expect("an answer"));
    let request = server.request(client.wire(), &era.message(1_000_000, method, params.clone()));
    let least = kept.exchange(&request).body.len();
    // The same question has the same answer, but for a number or a time within it.
    Asker { kept, request, least: least - 16 }
}

/// That an answer holds what was asked for, of the size that was asked for.
fn check(kind: Kind, what: What, answer: &Value) {
    let content = if kind == Kind::Filesystem { &answer["content"][0] } else { &answer["contents"][0] };
    let length = |key: &str| content[key].as_str().map_or(0, str::len);
    let (found, wanted) = match what {
        What::Text(_) if kind == Kind::Everything => (length("text"), 965),
        What::Text(size) => (length("text"), size),
        What::Blob(size) => (length("blob"), size.div_ceil(3) * 4),
        What::File => (length("text"), 4096),
        What::List if kind == Kind::Everything => (answer["resources"].as_array().map_or(0, Vec::len), 7),
        What::List => (answer["resources"].as_array().map_or(0, Vec::len), 100),
    };
    let shown: String = json!(answer).to_string().chars().take(300).collect();
    assert_eq!(found, wanted, "{} answers to {what:?}: {shown}", kind.name());
}
