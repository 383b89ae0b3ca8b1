//! Tests of the table of grant decisions, `tests/decisions/*.tsv`. belljar must decide each row as the table says, and must
//! parse its authority and path as browsers do. People wrote the table; it is not generated from the code.

#![expect(clippy::panic, clippy::print_stdout, reason = "a test fails by a panic, and prints its figures")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use belljar::grants::http::origin::{Origin, Scheme};
use belljar::grants::http::origin_grant::{GrantMismatch, OriginGrant, OriginGrantConfig, RequestTarget};
use belljar::grants::http::path;
use belljar::grants::network::address::reaches_listener;
use belljar::grants::network::host::Host;
use belljar::grants::secrets::Secrets;
use belljar_fuzz::browser;
use http::{Method, Uri};
use url::Url;

/// The least number of rows.
const ROWS: usize = 500;

/// The port on which belljar listens in the table.
const LISTENING: u16 = 8600;

/// The least number of rows with each verdict.
const EACH: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Allow,
    Malformed,
    Origin,
    Method,
    Path,
    Query,
    Override,
    Address,
    Own,
    Grant,
}

const VERDICTS: [(&str, Verdict); 10] = [
    ("allow", Verdict::Allow),
    ("malformed", Verdict::Malformed),
    ("origin", Verdict::Origin),
    ("method", Verdict::Method),
    ("path", Verdict::Path),
    ("query", Verdict::Query),
    ("override", Verdict::Override),
    ("address", Verdict::Address),
    ("own", Verdict::Own),
    ("grant", Verdict::Grant),
];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    file: String,
    grant: String,
    scheme: String,
    authority: String,
    method: String,
    target: String,
    address: Option<IpAddr>,
    verdict: Verdict,
    why: String,
}

/// The rows of a file, each with the text of its grant.
fn rows(file: &str, text: &str) -> Vec<Row> {
    let mut grants = BTreeMap::new();
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let place = format!("{file}:{}", at + 1);
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        if let Some(grant) = line.strip_prefix("= ") {
            let (name, grant) = grant.split_once('\t').unwrap_or_else(|| panic!("{place}: no tab"));
            let before = grants.insert(name.to_owned(), expanded(grant));
            assert!(before.is_none(), "{place}: the grant {name} is defined twice");
            continue;
        }
        let fields: Vec<String> = line.split('\t').map(expanded).collect();
        let [grant, scheme, authority, method, target, address, verdict, why] = fields.as_slice() else {
            panic!("{place}: {} fields", fields.len());
        };
        let known = VERDICTS.iter().find(|(name, _)| name == verdict);
        assert!(!why.is_empty(), "{place}: no reason");
        rows.push(Row {
            grant: grants.get(grant).unwrap_or_else(|| panic!("{place}: no grant {grant}")).clone(),
            address: (address != "-").then(|| address.parse().unwrap_or_else(|_| panic!("{place}: {address}"))),
            verdict: known.unwrap_or_else(|| panic!("{place}: no verdict {verdict}")).1,
            file: place,
            scheme: scheme.clone(),
            authority: authority.clone(),
            method: method.clone(),
            target: target.clone(),
            why: why.clone(),
        });
    }
    rows
}

/// Expands the notation of the table: `<a*64>` is 64 times "a", `<U+000A>` is the character U+000A.
fn expanded(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('<') {
        let (inner, after) = after.split_once('>').unwrap_or_else(|| panic!("a \"<\" without its \">\": {text}"));
        out.push_str(before);
        match inner.strip_prefix("U+") {
            Some(number) => {
                let number = u32::from_str_radix(number, 16).unwrap_or_else(|_| panic!("not a number: {text}"));
                out.push(char::from_u32(number).unwrap_or_else(|| panic!("not a character: {text}")));
            }
            None => {
                let (what, times) = inner.split_once('*').unwrap_or_else(|| panic!("neither \"U+\" nor \"*\": {text}"));
                out.push_str(&what.repeat(times.parse().unwrap_or_else(|_| panic!("not a number: {text}"))));
            }
        }
        rest = after;
    }
    out + rest
}

fn table() -> Vec<Row> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decisions");
    let files = ["addresses", "methods", "origins", "paths"].map(|name| format!("{name}.tsv"));
    let read =
        |name: &String| std::fs::read_to_string(directory.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    files.iter().flat_map(|name| rows(name, &read(name))).collect()
}

fn written(row: &Row) -> Option<OriginGrantConfig> {
    let table: toml::Table =
        format!("grant = {{ {} }}", row.grant).parse().unwrap_or_else(|why| panic!("{row:?}: {why}"));
    table.into_iter().next().and_then(|(_, grant)| grant.try_into().ok())
}

/// The decision of belljar, from the functions that check a request.
fn decided(row: &Row) -> Verdict {
    let Some(rule) = written(row).and_then(|written| OriginGrant::new(&written, &Secrets::default(), None).ok()) else {
        return Verdict::Grant;
    };
    let Ok(method) = Method::from_bytes(row.method.as_bytes()) else { return Verdict::Malformed };
    let parts = Uri::builder().scheme(row.scheme.as_str()).authority(row.authority.as_str());
    let Ok(uri) = parts.path_and_query(row.target.as_str()).build() else { return Verdict::Malformed };
    let Ok(target) = RequestTarget::read(&method, &uri) else { return Verdict::Malformed };
    decision(&rule, &target, row.address)
}

fn decision(rule: &OriginGrant, target: &RequestTarget, address: Option<IpAddr>) -> Verdict {
    let address = match target.origin.host {
        Host::Ip(own) => Some(own),
        Host::Name(_) => address,
    };
    match rule.check_target(target) {
        Err(GrantMismatch::Origin) => Verdict::Origin,
        Err(GrantMismatch::Method) => Verdict::Method,
        Err(GrantMismatch::Path) => Verdict::Path,
        Err(GrantMismatch::Query) => Verdict::Query,
        Err(GrantMismatch::Override) => Verdict::Override,
        Err(GrantMismatch::Credential) => panic!("no header was given"),
        Ok(()) if address.is_some_and(|address| !rule.allows_address(address, &target.origin.host)) => Verdict::Address,
        Ok(()) if address.is_some_and(|address| is_own(address, target.origin.port)) && !rule.own_ports() => {
            Verdict::Own
        }
        Ok(()) => Verdict::Allow,
    }
}

/// True if the address is belljar itself, which listens on both loopback addresses at the port [`LISTENING`].
fn is_own(address: IpAddr, port: u16) -> bool {
    let own = [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)];
    own.into_iter().any(|own| reaches_listener(SocketAddr::new(address, port), SocketAddr::new(own, LISTENING)))
}

/// Checks that belljar's decision agrees with `row`.
fn judge(row: &Row, decider: impl Fn(&Row) -> Verdict) -> Result<(), String> {
    let verdict = decider(row);
    if verdict == row.verdict { Ok(()) } else { Err(format!("{}: {verdict:?} instead of {row:?}", row.file)) }
}

/// Checks that belljar's parser alone decides in the same way, without the HTTP library.
fn judge_alone(row: &Row) -> Result<(), String> {
    let scheme = match row.scheme.as_str() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Ok(()),
    };
    let origin = Origin::parse(scheme, &row.authority);
    if let Ok(origin) = &origin {
        browser::agrees(origin, &row.authority).map_err(|why| format!("{}: {why}", row.file))?;
    }
    let (asked, query) = match row.target.split_once('?') {
        Some((asked, query)) => (asked, Some(path::normalise_query(query))),
        None => (row.target.as_str(), None),
    };
    let normal = path::normalise(asked);
    if let Ok(normal) = &normal {
        browser::keeps(normal).map_err(|why| format!("{}: {why}", row.file))?;
    }
    let is_read = origin.is_ok() && normal.is_ok() && query.is_none_or(|query| query.is_ok());
    // belljar's rules do not depend on those of the HTTP library, except for the method.
    let is_wrong = match row.verdict {
        Verdict::Malformed => is_read && Method::from_bytes(row.method.as_bytes()).is_ok(),
        Verdict::Grant => false,
        _ => !is_read,
    };
    if is_wrong { Err(format!("{}: belljar alone reads {origin:?} {normal:?} in {row:?}", row.file)) } else { Ok(()) }
}

#[test]
fn belljar_decides_every_row_as_the_table_says() {
    let table = table();
    let wrong: Vec<String> = table.iter().filter_map(|row| judge(row, decided).err()).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n"));
    println!("{} decisions, all as the table says", table.len());
}

#[test]
fn browsers_never_see_another_host_than_belljar() {
    let wrong: Vec<String> = table().iter().filter_map(|row| judge_alone(row).err()).collect();
    assert!(wrong.is_empty(), "{} rows:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_is_large_and_has_every_verdict() {
    let table = table();
    assert!(table.len() >= ROWS, "{} rows are fewer than {ROWS}", table.len());
    for (name, verdict) in VERDICTS {
        let rows = table.iter().filter(|row| row.verdict == verdict).count();
        assert!(rows >= EACH, "only {rows} rows say \"{name}\"");
    }
    let mut seen = BTreeMap::new();
    for row in &table {
        let key = (&row.grant, &row.scheme, &row.authority, &row.method, &row.target, row.address);
        if let Some(before) = seen.insert(key, &row.file) {
            panic!("{} repeats {before}", row.file);
        }
    }
}

#[test]
fn a_wrong_row_is_noticed() {
    let table = table();
    for row in &table {
        for (_, verdict) in VERDICTS.iter().filter(|(_, verdict)| *verdict != row.verdict) {
            let planted = Row { verdict: *verdict, ..row.clone() };
            assert!(judge(&planted, decided).is_err(), "{planted:?} passed");
        }
    }
    for planted in [
        "= g\torigin = \"https://api.example\"\ng\thttps\tevil.example\tGET\t/\t-\tallow\tplanted",
        "= g\torigin = \"https://api.example\"\ng\thttps\tapi.example\tGET\t/\t127.0.0.1\tallow\tplanted",
        "= g\torigin = \"https://api.example\"\ng\thttps\tapi.example\tGET\t/\t-\torigin\tplanted",
    ] {
        assert!(rows("planted", planted).iter().all(|row| judge(row, decided).is_err()), "{planted}");
    }
}

/// Decision functions with one common mistake each. The table must find the mistake of each.
#[test]
fn usual_mistakes_are_noticed() {
    type Mistake = (&'static str, fn(&Row) -> Verdict, Verdict, usize);
    let table = table();
    let mistakes: [Mistake; 4] = [
        (
            "the authority as browsers read it",
            |row| same(row, |u, g| (u.host_str(), u.port()) == (g.host_str(), g.port())),
            Verdict::Malformed,
            60,
        ),
        ("a host that ends in the granted one", |row| same(row, ends_in), Verdict::Origin, 10),
        ("ports are not compared", |row| same(row, |u, g| u.host_str() == g.host_str()), Verdict::Origin, 10),
        ("the standard library's private addresses", standard, Verdict::Address, 60),
    ];
    for (mistake, decider, of, least) in mistakes {
        let slipped: BTreeSet<_> = table
            .iter()
            .filter(|row| row.verdict == of && decider(row) == Verdict::Allow)
            .map(|row| &row.file)
            .collect();
        assert!(slipped.len() >= least, "{mistake}: only {} rows would notice it", slipped.len());
        println!("{mistake}: {} rows notice it", slipped.len());
    }
}

fn ends_in(url: &Url, granted: &Url) -> bool {
    url.host_str()
        .zip(granted.host_str())
        .is_some_and(|(host, granted)| host.ends_with(granted.trim_start_matches("*.")))
}

fn same(row: &Row, is_same: fn(&Url, &Url) -> bool) -> Verdict {
    let granted = written(row).and_then(|written| Url::parse(&written.origin).ok());
    let url = Url::parse(&format!("{}://{}/", row.scheme, row.authority)).ok();
    match granted.zip(url) {
        Some((granted, url)) if is_same(&url, &granted) => Verdict::Allow,
        _ => Verdict::Origin,
    }
}

fn standard(row: &Row) -> Verdict {
    match row.address {
        Some(IpAddr::V4(v4)) if v4.is_private() || v4.is_loopback() || v4.is_link_local() => Verdict::Address,
        Some(IpAddr::V6(v6)) if v6.is_loopback() || v6.is_unique_local() => Verdict::Address,
        _ => Verdict::Allow,
    }
}
