//! The clients. They send the same request many times, check that the answers are complete, and know the server's
//! process.

use std::collections::BTreeMap;

use belljar_tests::{Client, Era, Http, KeepAliveConnection, Server, Stdio};
use serde_json::{Value, json};

use crate::cases::{Case, Operation, Transport};
use crate::servers::{Kind, Place, Variant};

/// The running servers, with their clients.
pub(crate) struct Clients {
    pub(crate) place: Place,
    http: BTreeMap<(Kind, Variant), Server>,
    stdio: BTreeMap<(Kind, Variant, bool), Client<Stdio>>,
    /// The requests over HTTP, by kind of server and title of the group. Each client has one request.
    http_requests: BTreeMap<(Kind, String), Vec<PreparedRequest>>,
}

/// An HTTP connection, and the bytes of the request that is sent on it.
struct PreparedRequest {
    connection: KeepAliveConnection,
    request: Vec<u8>,
    /// The fewest bytes of the answer's body.
    least: usize,
}

impl PreparedRequest {
    fn ask(&mut self) {
        let response = self.connection.exchange(&self.request);
        let (status, size) = (response.status, response.body.len());
        assert!(status == 200 && size >= self.least, "HTTP {status}, {size} bytes");
    }
}

/// The transport of a server in a case. The filesystem server supports only stdio.
fn transport(kind: Kind, case: &Case) -> Transport {
    if kind == Kind::Filesystem { Transport::Stdio } else { case.transport }
}

impl Clients {
    pub(crate) fn new(place: Place) -> Clients {
        Clients { place, http: BTreeMap::new(), stdio: BTreeMap::new(), http_requests: BTreeMap::new() }
    }

    /// Starts the server if necessary, connects, and checks one answer completely.
    pub(crate) fn prepare(&mut self, kind: Kind, case: &Case) {
        let variant = kind.variant(case);
        if transport(kind, case) == Transport::Stdio {
            let (era, place) = (case.era(kind), &self.place);
            let client = self
                .stdio
                .entry((kind, variant, case.is_older))
                .or_insert_with(|| Client::start(place.stdio(kind, variant), era));
            let (method, params) = request(place, kind, case, 0);
            check(kind, case.operation, &client.request(&method, params).expect("an answer"));
            return;
        }
        let place = &self.place;
        let server = self.http.entry((kind, variant)).or_insert_with(|| place.http(kind, variant));
        let crowd = (0..case.clients).map(|number| {
            let (method, params) = request(place, kind, case, number);
            prepare_request(server, kind, case, &method, &params)
        });
        let crowd = crowd.collect();
        self.http_requests.insert((kind, case.title()), crowd);
    }

    /// Sends `times` requests in total, over all clients.
    pub(crate) fn ask(&mut self, kind: Kind, case: &Case, times: u32) {
        let each = times / case.clients;
        if transport(kind, case) == Transport::Http {
            let crowd = self.http_requests.get_mut(&(kind, case.title())).expect("a prepared server");
            if let [alone] = crowd.as_mut_slice() {
                return (0..each).for_each(|_| alone.ask());
            }
            return std::thread::scope(|scope| {
                for client in crowd {
                    scope.spawn(move || (0..each).for_each(|_| client.ask()));
                }
            });
        }
        let requests: Vec<_> = (0..case.clients).map(|number| request(&self.place, kind, case, number)).collect();
        let variant = kind.variant(case);
        let client = self.stdio.get_mut(&(kind, variant, case.is_older)).expect("a prepared server");
        for _ in 0..each {
            let sent: Vec<u64> = requests.iter().map(|(method, params)| client.send(method, params.clone())).collect();
            sent.into_iter().for_each(|id| drop(client.wait(id).expect("an answer")));
        }
    }

    /// The process id of the server.
    pub(crate) fn pid(&self, kind: Kind, case: &Case) -> u32 {
        let variant = kind.variant(case);
        let process = match transport(kind, case) {
            Transport::Http => self.http.get(&(kind, variant)).map(|server| server.process.id()),
            Transport::Stdio => {
                self.stdio.get(&(kind, variant, case.is_older)).map(|client| client.wire_ref().process.id())
            }
        };
        process.expect("a prepared server")
    }

    /// Checks belljar's audit records. Every read must have run the guest in a fresh sandbox.
    pub(crate) fn check_records(&self) {
        let records = self.place.site.audit();
        let reads: Vec<&Value> = records.iter().filter(|record| record["operation"] == "read").collect();
        let ran = |record: &&Value| record["usage"]["fuel"].as_u64().is_some_and(|fuel| fuel > 0);
        let others: Vec<_> = reads.iter().filter(|record| !ran(record)).collect();
        assert!(others.is_empty(), "{} reads ran no guest, the first: {}", others.len(), others[0]);
        println!("\nbelljar has records of {} reads, and each read ran the guest.", reads.len());
    }
}

/// The method and the parameters of a client's request.
fn request(place: &Place, kind: Kind, case: &Case, client: u32) -> (String, Value) {
    let mut request = kind.request(case.operation, client).expect("a server that supports the operation");
    let params = if kind == Kind::Filesystem { place.tool_call() } else { request["params"].take() };
    (request["method"].as_str().expect("a method").to_owned(), params)
}

/// Connects, initializes, checks one answer, and prepares the request.
fn prepare_request(server: &Server, kind: Kind, case: &Case, method: &str, params: &Value) -> PreparedRequest {
    let era: Era = case.era(kind);
    let mut client: Client<Http> = Client::connect_silently(server.wire(era), era);
    let mut connection = KeepAliveConnection::to(server);
    let (greeting, greeting_params) = era.greeting();
    client.request(greeting, greeting_params).expect("a greeting");
    if era == Era::Session {
        // Do not send this with `client`: FastMCP labels its empty answer as JSON, and `client` refuses that.
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(connection.exchange(&server.request(client.wire(), &initialized)).status, 202);
    }
    check(kind, case.operation, &client.request(method, params.clone()).expect("an answer"));
    let request = server.request(client.wire(), &era.message(1_000_000, method, params.clone()));
    let size = connection.exchange(&request).body.len();
    // Answers to the same request differ at most in a number or a time. Their lengths differ by less than 16 bytes.
    PreparedRequest { connection, request, least: size - 16 }
}

/// Checks that an answer has the requested contents, with the requested size.
fn check(kind: Kind, operation: Operation, answer: &Value) {
    let content = if kind == Kind::Filesystem { &answer["content"][0] } else { &answer["contents"][0] };
    let length = |key: &str| content[key].as_str().map_or(0, str::len);
    let (actual, expected) = match operation {
        Operation::Text(_) if kind == Kind::Everything => (length("text"), 965),
        Operation::Text(size) => (length("text"), size),
        Operation::Blob(size) => (length("blob"), size.div_ceil(3) * 4),
        Operation::File => (length("text"), 4096),
        Operation::List if kind == Kind::Everything => (answer["resources"].as_array().map_or(0, Vec::len), 7),
        Operation::List => (answer["resources"].as_array().map_or(0, Vec::len), 100),
    };
    let shown: String = json!(answer).to_string().chars().take(300).collect();
    assert_eq!(actual, expected, "{} answers to {operation:?}: {shown}", kind.name());
}
