//! The harness: runs the real `belljar` binary and speaks to it as a client does, byte by byte.
//!
//! It owns the temporary places a run needs, the two wires (stdio and HTTP), both protocol eras, and the strictness of
//! a test: whatever a peer may not do makes it panic. It must not know the host's crates: what it says about belljar
//! is said from outside. `cargo xtask demo` uses the same clients, so that the demo shows what the tests prove.
//!
//! # In a test
//!
//! ```no_run
//! use belljar_tests::{Era, Site};
//!
//! let mut site = Site::new();
//! site.mount("clock");                                   // target/plugins/clock.wasm or target/guests/clock.wasm
//! site.mount_as("guest_fixture", "fixture.wasm");        // under another file name, so under another mount name
//! site.drop_in("junk.wasm", b"not a component");         // any bytes
//! site.write("data/a.md", "# A");                        // files to grant
//! site.config(&format!("[mounts.fixture]\nuri = \"test://\"\nfs = {{ \"/\" = {:?} }}", site.path("data")));
//!
//! let mut client = site.stdio(Era::Modern);              // starts `belljar serve`, greets it
//! assert_eq!(client.text("test://static-text"), "hello");
//! let failure = client.read("test://nope").unwrap_err(); // RpcError { code, message, data }
//! let slow = client.send("resources/read", serde_json::json!({ "uri": "test://sleep" }));
//! client.cancel(slow);                                   // ids in flight; `wait`, `wait_for` collect them
//! client.close();                                        // ends the stream; checks exit and every byte of stdout
//!
//! let server = site.http();                              // starts `belljar serve --http 127.0.0.1:0`
//! let mut one = server.client(Era::Older);
//! let mut two = server.client(Era::Modern);              // any number, each on its own connection and thread
//! let raw = server.raw(b"GET / HTTP/1.1\r\n\r\n");       // any bytes
//! let answer = server.exchange("POST", "/mcp", &[("Origin", "http://evil.example")], b"{}");
//! let listed = site.run(&["list", "--json"]);            // any other verb, to its end
//! let records = site.audit();                            // the audit file's lines, once `config` sets it
//! ```
//!
//! # What is checked without being asked
//! - Every line on stdout is one JSON-RPC message, in UTF-8, and the stream ends with a line feed ([`stdio::check_line`]).
//! - Every answer belongs to a request in flight and comes once.
//! - Nothing waits for ever: each exchange has [`Client::patience`], each process a deadline.
//! - A server dies with the value that started it.
//!
//! A missing binary or guest is a failure that says what to run. [`places::target`] tells where they are looked for.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "in a test harness a panic is how a failure is told"
)]

pub mod client;
pub mod events;
pub mod http;
pub mod line;
pub mod net;
pub mod places;
pub mod process;
pub mod site;
pub mod stdio;
pub mod watch;

pub use client::{Client, Era, RpcError, Wire};
pub use events::Events;
pub use http::{Http, Kept, Response, Server};
pub use line::Line;
pub use process::{Ended, Process};
pub use site::Site;
pub use stdio::Stdio;
pub use watch::Watch;

/// Whether a character steers a terminal, reorders what is read, or hides.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
