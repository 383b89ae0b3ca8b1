//! Measures what authentication, rules and quotas cost.
//!
//! - In this process: an access token for the first time and when it is remembered, an API key, a decision by 20 rules,
//!   and a filter of 1,000,000 references.
//! - With the program: reads over HTTP with a remembered token and 20 rules, compared with reads without both; a list of
//!   1,000,000 entries with and without rules; and the reads of one client beside 50 that have used up their quotas.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar::auth::{Credentials, TokenVerifier, TokenVerifierInput};
use belljar::config::{Config, ConfigInput};
use belljar::grants::secrets::Secrets;
use belljar::model::MountName;
use belljar::policy::{Action, Policy, Principal, Target};
use belljar_benches::{Record, Samples, process_cpu, row, thread_cpu};
use belljar_tests::{Client, Era, Http, Server, Site};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

/// The audience of the tokens.
const URL: &str = "http://127.0.0.1:1/mcp";

/// The issuer of the tokens.
const ISSUER: &str = "https://login.example";

/// The references of the list that is filtered.
const REFERENCES: u32 = 1_000_000;

/// Principals that have used up their quotas.
const CROWD: usize = 50;

/// Reads of one measurement of latency.
const READS: u32 = 2000;

/// Reads of one measurement of processor time. Few, so that both servers are measured at the same moments of a busy machine.
const BATCH: u32 = 250;

/// Measurements of processor time in each round.
const BATCHES: u32 = 8;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// An issuer's key.
struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    fn new() -> Self {
        let (curve, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(curve, &random).expect("a new key");
        Self(EcdsaKeyPair::from_pkcs8(curve, key.as_ref(), &random).expect("an EC key"))
    }

    /// The key set with the public key.
    fn key_set(&self) -> String {
        let (x, y) = self.0.public_key().as_ref().get(1..).expect("a point").split_at(32);
        let key = json!({ "kty": "EC", "crv": "P-256", "kid": "k", "use": "sig", "x": encode(x), "y": encode(y) });
        json!({ "keys": [key] }).to_string()
    }

    /// A good access token of this subject.
    fn token(&self, subject: &str) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970").as_secs();
        let header = json!({ "alg": "ES256", "kid": "k", "typ": "at+jwt" });
        let claims = json!({
            "iss": ISSUER, "aud": URL, "sub": subject, "client_id": "agent", "scope": "a b", "iat": now,
            "exp": now + 600,
        });
        let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = self.0.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature");
        format!("{message}.{}", encode(signature))
    }
}

/// Twenty rules, of which most are for others, and some are for every principal.
fn rules() -> String {
    let mut rules = String::new();
    for n in 0..14 {
        let _ = writeln!(rules, "[[allow]]\nwho = {{ user = \"user{n}\" }}\nwhat = \"belljar://sized/user{n}/**\"");
    }
    for n in 0..3 {
        let _ = writeln!(rules, "[[deny]]\nwho = \"anyone\"\nwhat = \"belljar://sized/secret{n}/**\"");
    }
    for part in ["text/**", "list/**", "dir*/**"] {
        let _ = writeln!(rules, "[[allow]]\nwho = \"anyone\"\nwhat = \"belljar://sized/{part}\"");
    }
    rules
}

/// A configuration with this text.
fn config(text: &str) -> Config {
    let input = ConfigInput { file: Some(("/bench/belljar.toml".into(), text.to_owned())), ..ConfigInput::default() };
    Config::read(input).expect("a valid configuration")
}

/// Measures `operations` of one kind, in microseconds of processor time for each.
fn time(samples: &mut Samples, operations: u32, mut operation: impl FnMut(u32)) {
    let before = thread_cpu();
    (0..operations).for_each(&mut operation);
    samples.add(thread_cpu() - before, operations);
}

/// The parts of an authorization in this process.
fn in_process(record: &mut Record, rounds: u32) {
    let key = SigningKey::new();
    let text = format!("[auth]\nissuers = [{{ issuer = \"{ISSUER}\", jwks = \"keys.json\" }}]\n{}", rules());
    let mut config = config(&text);
    let auth = config.auth.clone().expect("[auth]");
    let files = auth.key_set_files().map(|path| (path.clone(), key.key_set()));
    config.key_sets = files.collect();
    let (secrets, policy) = (Secrets::default(), Policy::new(config.decider()));
    let input = TokenVerifierInput { url: Some(URL), key_sets: &config.key_sets, secrets: &secrets, network: None };
    let verifier = TokenVerifier::new(&auth, &input, None).expect("a verifier");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let at = SystemTime::now();
    let mount = MountName::new("sized").expect("a name");
    let target = |reference| Target { mount: &mount, base: "belljar://sized/", reference };
    let (mut first, mut remembered, mut decision, mut both) = <(Samples, Samples, Samples, Samples)>::default();
    let mut filter = Samples::default();
    let references: Vec<String> = (0..REFERENCES).map(|n| format!("dir{}/file-{n}.md", n / 1000)).collect();
    for round in 0..rounds {
        let tokens: Vec<String> = (0..200).map(|n| key.token(&format!("user-{round}-{n}"))).collect();
        let token = |n: u32| tokens.get(n as usize % tokens.len()).expect("a token").as_str();
        let check = |token: &str| runtime.block_on(verifier.check(token, at)).expect("a good token");
        time(&mut first, 200, |n| drop(black_box(check(token(n)))));
        time(&mut remembered, 20_000, |n| drop(black_box(check(token(n)))));
        let principal = check(token(0));
        let authorize = |principal: &Principal, reference: &'static str| {
            policy.authorize(principal, Action::Read, target(Some(reference)), at)
        };
        time(&mut decision, 20_000, |_| drop(black_box(authorize(&principal, "text/1024").expect("allowed"))));
        time(&mut both, 20_000, |_| {
            drop(black_box(authorize(&check(token(0)), "text/1024").expect("allowed")));
        });
        let visible = policy.visibility(&principal, Action::List, target(None), at);
        let before = thread_cpu();
        let seen = references.iter().filter(|reference| visible.contains(reference)).count();
        filter.add(thread_cpu() - before, REFERENCES);
        assert_eq!(black_box(seen), references.len());
    }
    println!("\n| in one process | us CPU, median | middle half | ratio |\n|---|---|---|---|");
    for (name, samples) in [
        ("an ES256 token for the first time", &first),
        ("a remembered token", &remembered),
        ("a decision by 20 rules", &decision),
        ("a remembered token and a decision", &both),
        ("the filter of a list, for each entry", &filter),
    ] {
        println!("{}", row(name, samples, &both));
        record.row("authorization", name, "us", &samples.0);
    }
}

/// A site with the provider `sized`, and a key for each of `names`.
fn site(names: &[String], text: &str) -> (Site, Vec<String>) {
    let site = Site::new();
    site.mount_as("guest_sized", "sized.wasm");
    let audit = site.path("audit.jsonl");
    site.config(&format!("audit = {audit:?}\n{text}"));
    let keys = names.iter().map(|name| {
        let output = site.run(&["key", "new", name]);
        String::from_utf8(output.stdout).expect("a key").trim().to_owned()
    });
    let keys = keys.collect();
    (site, keys)
}

fn client(server: &Server, key: Option<&String>) -> Client<Http> {
    let mut wire = server.wire(Era::Stateless);
    wire.authorization = key.map(|key| format!("Bearer {key}"));
    Client::connect(wire, Era::Stateless)
}

/// Configuration with an issuer whose keys are in a file of the site.
fn issuer() -> String {
    format!(
        "[serve]\nurl = \"{URL}\"\n[auth]\nissuers = [{{ issuer = \"{ISSUER}\", jwks = \"jwks.json\" }}]\n{}",
        rules()
    )
}

/// Reads over HTTP with a token and rules, compared with reads without both.
fn reads(record: &mut Record, rounds: u32) {
    let (open, _) = site(&[], "");
    let (closed, _) = site(&[], &issuer());
    let key = SigningKey::new();
    closed.write("jwks.json", key.key_set());
    let servers = [open.http(), closed.http()];
    let token = key.token("alice");
    let mut clients = [client(&servers[0], None), client(&servers[1], Some(&token))];
    let mut samples = [Samples::default(), Samples::default()];
    for batch in 0..=rounds * BATCHES {
        for ((server, client), samples) in servers.iter().zip(&mut clients).zip(&mut samples) {
            let before = process_cpu(server.process.id());
            for _ in 0..BATCH {
                client.read("belljar://sized/text/1024").expect("a reading");
            }
            // The first one warms up.
            if batch > 0 {
                samples.add(process_cpu(server.process.id()) - before, BATCH);
            }
        }
    }
    println!("\n| a read of 1 KiB over HTTP | us CPU of the server, median | middle half | ratio |\n|---|---|---|---|");
    for (name, own) in ["anonymous, without rules", "a remembered token and 20 rules"].iter().zip(&samples) {
        println!("{}", row(name, own, &samples[0]));
        record.row("a read of 1 KiB over HTTP", name, "us", &own.0);
    }
}

/// The processor time of a server for a list of 1,000,000 entries, with and without rules: every page, as a client gets it.
fn lists(record: &mut Record, rounds: u32) {
    let mount = "[limits]\nresources = 1000000\n[mounts.sized]\ncomponent = \"guest_hostile.wasm\"\nenv = { HOSTILE_LIST = \"endless\" }\n";
    let rules = rules().replace("dir*/**", "n/**");
    let sites = ["list-time = \"60s\"\n".to_owned(), format!("list-time = \"60s\"\n[auth]\n{rules}")].map(|text| {
        let (site, keys) = site(&["agent".to_owned()], &format!("{text}{mount}"));
        site.mount("guest_hostile");
        (site, keys)
    });
    let servers = sites.each_ref().map(|(site, _)| site.http());
    let has_key = [false, true];
    let mut clients: Vec<_> = (servers.iter().zip(&sites).zip(has_key))
        .map(|((server, (_, keys)), has_key)| client(server, keys.first().filter(|_| has_key)))
        .collect();
    let mut samples = [Samples::default(), Samples::default()];
    for round in 0..=rounds {
        for ((server, client), samples) in servers.iter().zip(&mut clients).zip(&mut samples) {
            let before = process_cpu(server.process.id());
            let (mut cursor, mut entries) = (None::<String>, 0_u32);
            loop {
                let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
                let page = client.request("resources/list", params).expect("a page");
                let count = page.get("resources").and_then(Value::as_array).map_or(0, Vec::len);
                entries += u32::try_from(count).unwrap_or(u32::MAX);
                cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
                if cursor.is_none() {
                    break;
                }
            }
            assert!(entries >= REFERENCES, "{entries} entries");
            if round > 0 {
                samples.add(process_cpu(server.process.id()) - before, entries);
            }
        }
    }
    println!(
        "\n| a list of {REFERENCES} entries over HTTP | us CPU for each entry | middle half | ratio |\n|---|---|---|---|"
    );
    for (name, own) in ["for everybody, over HTTP", "by 20 rules, over HTTP"].iter().zip(&samples) {
        println!("{}", row(name, own, &samples[0]));
        record.row("a list of 1,000,000 entries over HTTP", name, "us", &own.0);
    }
}

/// The reads of one client, alone and beside 50 principals that have used up their quotas.
fn crowd(record: &mut Record, rounds: u32) {
    let names: Vec<String> = (0..=CROWD).map(|n| format!("p{n}")).collect();
    let text = "[auth]\n[[allow]]\nwho = { key = \"p0\" }\n[[allow]]\nwho = \"anyone\"\nrate = \"10/min per caller\"\n";
    let (site, keys) = site(&names, text);
    let server = site.http();
    let (is_on, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let (mut alone, mut beside) = (Samples::default(), Samples::default());
    std::thread::scope(|scope| {
        for key in keys.iter().skip(1) {
            let (server, is_on, is_over) = (&server, &is_on, &is_over);
            scope.spawn(move || {
                let mut client = client(server, Some(key));
                while !is_over.load(Ordering::Relaxed) {
                    if is_on.load(Ordering::Relaxed) {
                        let _: Result<Value, _> = client.read("belljar://sized/text/1024");
                    }
                    // An agent that asks again twenty times a second, whatever it is told.
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
        }
        let mut honest = client(&server, keys.first());
        for _ in 0..rounds {
            for (samples, has_crowd) in [(&mut alone, false), (&mut beside, true)] {
                is_on.store(has_crowd, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(500));
                let mut latency = Samples::default();
                for _ in 0..READS {
                    let began = Instant::now();
                    honest.read("belljar://sized/text/1024").expect("a reading");
                    latency.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), 1);
                }
                samples.0.push(latency.quantile(0.99));
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("\n| p99 of a read over HTTP | us, median of the rounds | middle half | ratio |\n|---|---|---|---|");
    for (name, own) in [("alone", &alone), ("beside 50 principals at their quota", &beside)] {
        println!("{}", row(name, own, &alone));
        record.row("p99 of a read over HTTP, with a key", name, "us", &own.0);
    }
}

fn main() {
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(7);
    let mut record = Record::new();
    in_process(&mut record, rounds);
    reads(&mut record, rounds);
    lists(&mut record, rounds.min(5));
    crowd(&mut record, rounds);
    record.hand_over().expect("a file that can be written");
}
