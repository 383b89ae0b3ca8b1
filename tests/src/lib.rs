//! The test harness: runs the real `belljar` binary, and talks to it as a client does.
//!
//! The crate owns the temporary sites of tests, the clients for two transports (stdio and HTTP) and for both protocol
//! eras. A client panics if the server breaks the protocol. The crate uses no crate of the host, so its checks do not
//! depend on belljar's code. `cargo xtask demo` uses the same clients, so that the demo shows the behaviour that the
//! tests check.
//!
//! # In a test
//!
//! ```no_run
//! use belljar_tests::{Era, Site};
//!
//! let mut site = Site::new();
//! site.mount("clock");                                   // target/plugins/clock.wasm or target/guests/clock.wasm
//! site.mount_as("guest_fixture", "fixture.wasm");        // under another file name, so under another mount name
//! site.drop_in("junk.wasm", b"not a component");         // a file with any bytes
//! site.write("data/a.md", "# A");                        // files to grant
//! site.config(&format!("[mounts.fixture]\nuri = \"test://\"\nfs = {{ \"/\" = {:?} }}", site.path("data")));
//!
//! let mut client = site.stdio(Era::Stateless);           // starts `belljar serve`, initializes the connection
//! assert_eq!(client.text("test://static-text"), "hello");
//! let failure = client.read("test://nope").unwrap_err(); // RpcError { code, message, data }
//! let slow = client.send("resources/read", serde_json::json!({ "uri": "test://sleep" }));
//! client.cancel(slow);                                   // or take the answer with `wait` or `wait_for`
//! client.close();                                        // ends the stream; checks every byte of stdout, waits for the exit
//!
//! let server = site.http();                              // starts `belljar serve --http 127.0.0.1:0`
//! let mut one = server.client(Era::Session);
//! let mut two = server.client(Era::Stateless);           // any number, each on its own connection and thread
//! let raw = server.raw(b"GET / HTTP/1.1\r\n\r\n");       // any bytes
//! let answer = server.exchange("POST", "/mcp", &[("Origin", "http://evil.example")], b"{}");
//! let listed = site.run(&["list", "--json"]);            // runs another command to its end
//! let records = site.audit();                            // the lines of the audit file, if `config` sets `audit`
//! ```
//!
//! # Checks in every test
//! - Every line on stdout is one JSON-RPC message, in UTF-8, and the stream ends with a line feed
//!   ([`stdio::check_line`]).
//! - Every answer belongs to a request in flight, and each request has one answer.
//! - Each wait has a longest time: [`Client::patience`] for an answer, [`process::END`] for the end of a process, and
//!   [`DEADLINE`] for another event.
//! - Dropping a [`Server`], a [`Stdio`] or a [`Process`] kills the process.
//!
//! A test waits for an event by [`wait_until`], never by a fixed sleep. A test asserts order and counts, never a
//! duration, because its result must not depend on the machine's speed. If a test compares times, [`Load`] says if the
//! result counts.
//!
//! If a binary or guest is missing in [`places::target`], the test fails and names the command that builds it.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test harness reports a failure by a panic"
)]

pub mod client;
pub mod debian;
pub mod events;
pub mod http;
pub mod load;
pub mod net;
pub mod places;
pub mod process;
pub mod redis;
pub mod registry;
pub mod shared_stdio;
pub mod site;
pub mod stdio;
pub mod wait;
pub mod watch;

pub use client::{Client, Era, RpcError, Wire};
pub use events::Events;
pub use http::{Http, KeepAliveConnection, Response, Server};
pub use load::Load;
pub use process::{Ended, Process};
pub use redis::Redis;
pub use registry::{Artifact, Registry};
pub use shared_stdio::SharedStdio;
pub use site::Site;
pub use stdio::Stdio;
pub use wait::{DEADLINE, wait_until, wait_until_within};
pub use watch::Watch;

/// True if a character controls a terminal, or hides or reorders text.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
