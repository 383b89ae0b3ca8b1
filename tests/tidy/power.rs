//! Which modules of the host may name what is powerful: the engine, the protocol library, the machine itself.

use crate::names::{self, Use};
use crate::{files, none, ranks};

/// Names that only some modules may use.
struct Confined {
    what: &'static str,
    /// Whether a path is such a name.
    is: fn(&[&str]) -> bool,
    /// The modules that may name it, with all below them; `[]` is the program's root.
    within: &'static [&'static [&'static str]],
    /// Whether tests may, too.
    tests_may: bool,
}

const CONFINED: [Confined; 3] = [
    Confined {
        what: "wasmtime",
        is: |path| path[0] == "wasmtime" || path[0].starts_with("wasmtime_"),
        within: &[&["sandbox"], &["grants"]],
        tests_may: false,
    },
    Confined { what: "rmcp", is: |path| path[0] == "rmcp", within: &[&["mcp"], &["transport"]], tests_may: false },
    Confined {
        what: "the machine's files, network, environment or processes",
        is: is_ambient,
        within: &[&["cli"], &["config"], &["grants"], &["catalog", "watch"], &[]],
        // A test of what reads a directory has to make one.
        tests_may: true,
    },
];

/// Names of `std::net` that are data: holding an address is not the power to connect to it.
const ADDRESSES: [&str; 7] =
    ["AddrParseError", "IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6"];

fn is_ambient(path: &[&str]) -> bool {
    match path {
        ["std", "net", name, ..] if ADDRESSES.contains(name) => false,
        ["std", "fs" | "net" | "env" | "process", ..] => true,
        // A socket of tokio's may be handed on; that it is not opened elsewhere is clippy's to see (host/clippy.toml).
        ["tokio", "fs" | "process", ..] => true,
        // A glob could bring any of them.
        ["std" | "tokio", "*"] => true,
        _ => false,
    }
}

/// Every place where a file of the host names what its module may not.
fn violations(path: &str, text: &str) -> Vec<String> {
    let Some(own) = ranks::module(path) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for name in names::uses(path, text, &own) {
        for confined in &CONFINED {
            if !allows(confined, &own, &name) {
                found.push(format!("{path}:{}: `{}` is {}", name.line, name.path.join("::"), confined.what));
            }
        }
    }
    found
}

fn allows(confined: &Confined, own: &[&str], name: &Use) -> bool {
    let path: Vec<_> = name.path.iter().map(String::as_str).collect();
    let within = |module: &&[&str]| {
        if module.is_empty() { own.is_empty() } else { own.starts_with(module) }
    };
    !(confined.is)(&path) || confined.within.iter().any(within) || (confined.tests_may && name.in_tests)
}

#[test]
fn power_is_named_only_where_it_is_spent() {
    none(files(".rs").iter().flat_map(|file| violations(&file.path, &file.text)));
}

#[test]
fn power_in_the_wrong_place_is_found() {
    for (path, text) in [
        ("host/src/gateway.rs", "use wasmtime::Store;"),
        ("host/src/catalog.rs", "fn a(_: &wasmtime_wasi::WasiCtx) {}"),
        ("host/src/main.rs", "use wasmtime as engine;"),
        ("host/src/gateway.rs", "use rmcp::model::Resource;"),
        ("host/src/mcp/tests.rs", "use wasmtime::Engine;"),
        ("host/src/catalog.rs", "use std::fs;"),
        ("host/src/catalog/listing.rs", "use std::{collections::BTreeMap, fs::File};"),
        ("host/src/sandbox/compile.rs", "fn a() { std::process::Command::new(\"x\"); }"),
        ("host/src/sandbox.rs", "use tokio::process::Command;"),
        ("host/src/model.rs", "use std::net::TcpListener;"),
        ("host/src/audit.rs", "use std::*;"),
        ("host/src/audit.rs", "fn a() { log!(std::env::var(\"X\")) }"),
    ] {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn power_in_its_place_is_fine() {
    for (path, text) in [
        ("host/src/sandbox/call.rs", "use wasmtime::Store;"),
        ("host/src/grants/http.rs", "use wasmtime_wasi_http::Body; use std::net::TcpStream;"),
        (
            "host/src/transport/http.rs",
            "use rmcp::transport::Http; use std::net::SocketAddr; use tokio::net::TcpStream;",
        ),
        ("host/src/catalog/watch.rs", "use std::fs;"),
        ("host/src/catalog/watch/poll.rs", "use std::fs;"),
        ("host/src/cli/serve.rs", "use std::env; use tokio::net::TcpListener;"),
        ("host/src/main.rs", "use std::process::ExitCode;"),
        ("host/src/catalog/tests.rs", "use std::fs;"),
        ("host/src/catalog.rs", "mod tests { use std::fs; } /// std::env\nfn fs() {}"),
        ("xtask/src/main.rs", "use std::fs;"),
    ] {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}
