//! One test for each combination of real client, protocol era and transport. `expectations.rs` has the
//! expected lists and contents.

use belljar_tests::Era;

use crate::clients::expectations::{Expected, READS, site};
use crate::clients::programs::{Reach, Report, inspector, node, python};

/// Declares one test over stdio and one over HTTP for each client and mode.
macro_rules! clients {
    ($($name:ident: $run:expr, $expected:expr;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn over_stdio() {
                let site = site();
                check(($run)(&Reach::Stdio(&site)), &$expected);
            }

            #[test]
            fn over_http() {
                let site = site();
                let server = site.http();
                check(($run)(&Reach::Http(&server)), &$expected);
                let ended = server.stop();
                assert!(ended.status.success(), "the server ended with {}:\n{}", ended.status, ended.stderr);
            }
        }
    )*};
}

clients! {
    python_2_auto:
        |reach: &Reach<'_>| python(2, reach, "auto", READS),
        Expected::new("python mcp 2.3.0", Era::Stateless);
    python_2_legacy:
        |reach: &Reach<'_>| python(2, reach, "legacy", READS),
        Expected::new("python mcp 2.3.0", Era::Session);
    python_1:
        |reach: &Reach<'_>| python(1, reach, "", READS),
        Expected::new("python mcp 1.30.0", Era::Session);
    typescript_sdk_1:
        |reach: &Reach<'_>| node("sdk_1.mjs", reach, "", READS),
        Expected::new("@modelcontextprotocol/sdk 1.32.2", Era::Session);
    typescript_client_2_default:
        |reach: &Reach<'_>| node("client_2.mjs", reach, "default", READS),
        // This client follows cursors by itself, and shows the code of 2026-07-28 in both eras.
        Expected { walks_pages: false, not_found: Some(Era::Stateless.not_found()), ..Expected::new(CLIENT_2, Era::Session) };
    typescript_client_2_auto:
        |reach: &Reach<'_>| node("client_2.mjs", reach, "auto", READS),
        Expected { walks_pages: false, ..Expected::new(CLIENT_2, Era::Stateless) };
    inspector_legacy:
        |reach: &Reach<'_>| inspector(reach, "legacy", READS),
        Expected::inspector();
    inspector_modern:
        |reach: &Reach<'_>| inspector(reach, "modern", READS),
        Expected::inspector();
}

const CLIENT_2: &str = "@modelcontextprotocol/client 2.4.0";

/// Checks the report of a client. `None`: this machine lacks the client, and `cargo xtask test` has reported that. CI has all
/// clients.
fn check(report: Option<Report>, expected: &Expected) {
    if let Some(report) = report {
        expected.check(&report);
    }
}
