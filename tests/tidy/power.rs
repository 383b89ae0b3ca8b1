//! Checks that only some modules of the host use the engine and the protocol library. Also restricts the use of the
//! machine's files, network, environment variables and processes.

use crate::names::{self, Use};
use crate::{assert_none, files, ranks};

/// Names that only some modules may use.
struct Confined {
    /// The description of the names.
    what: &'static str,
    /// True for a path that is one of the names.
    is: fn(&[&str]) -> bool,
    /// The modules that may use the names, with their submodules. `[]` is the root of the program.
    within: &'static [&'static [&'static str]],
    /// True if tests may use the names, too.
    tests_may: bool,
}

const CONFINED: [Confined; 4] = [
    Confined {
        what: "wasmtime",
        is: |path| path[0] == "wasmtime" || path[0].starts_with("wasmtime_"),
        within: &[&["sandbox"], &["interfaces"], &["grants"]],
        tests_may: false,
    },
    Confined { what: "rmcp", is: |path| path[0] == "rmcp", within: &[&["mcp"], &["transport"]], tests_may: false },
    Confined {
        what: "the machine's files, network, environment or processes",
        is: is_ambient,
        within: &[&["cli"], &["server"], &["config"], &["grants"], &["catalog", "watch"], &[]],
        // Tests create directories and files.
        tests_may: true,
    },
    Confined {
        what: "tokio's clock that can be paused (feature \"test-util\")",
        is: |path| matches!(path, ["tokio", "time", "pause" | "resume" | "advance", ..]),
        within: &[],
        tests_may: true,
    },
];

/// Names of `std::net` that are only data. Every module may use them, because an address alone opens no connection.
const ADDRESSES: [&str; 7] =
    ["AddrParseError", "IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6"];

/// True for a path that reaches the machine's files, network, environment or processes.
fn is_ambient(path: &[&str]) -> bool {
    match path {
        ["std", "net", name, ..] if ADDRESSES.contains(name) => false,
        ["std", "fs" | "net" | "env" | "process", ..] => true,
        // `tokio::net` is allowed: other modules get open sockets. clippy forbids opening them elsewhere
        // (host/clippy.toml).
        ["tokio", "fs" | "process", ..] => true,
        // A glob import contains such names.
        ["std" | "tokio", "*"] => true,
        _ => false,
    }
}

/// Every use of a name in a file of the host that its module may not use.
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
fn restricted_names_are_used_only_in_their_modules() {
    assert_none(files(".rs").iter().flat_map(|file| violations(&file.path, &file.text)));
}

#[test]
fn a_restricted_name_in_another_module_is_found() {
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
        ("host/src/limits/turns.rs", "use tokio::time::pause;"),
        ("host/src/audit.rs", "fn a() { log!(std::env::var(\"X\")) }"),
    ] {
        assert_eq!(violations(path, text).len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_restricted_name_in_its_module_is_allowed() {
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
        ("host/src/limits/turns/tests.rs", "fn a() { tokio::time::pause(); }"),
        ("host/src/catalog.rs", "mod tests { use std::fs; } /// std::env\nfn fs() {}"),
        ("xtask/src/main.rs", "use std::fs;"),
    ] {
        assert_eq!(violations(path, text), Vec::<String>::new(), "{path}: {text}");
    }
}
