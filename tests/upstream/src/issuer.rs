//! An authorization server for tests: its metadata are right unless a test changes them, and a test decides on each answer
//! of its token endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{ReceivedRequest, Upstream, answer};

/// The path of the metadata.
const METADATA: &str = "/.well-known/oauth-authorization-server";

/// A running authorization server.
#[derive(Debug)]
pub struct Issuer {
    server: Upstream,
}

/// The answer to a request for a token.
pub fn token(value: &str, seconds: u64) -> Vec<u8> {
    json(&format!("{{\"access_token\":\"{value}\",\"token_type\":\"Bearer\",\"expires_in\":{seconds}}}"))
}

/// An answer with a JSON body.
pub fn json(body: &str) -> Vec<u8> {
    answer("200 OK", "content-type: application/json\r\ncache-control: no-store\r\n", body)
}

/// An answer with an error of OAuth.
pub fn refusal(code: &str) -> Vec<u8> {
    answer("400 Bad Request", "content-type: application/json\r\n", format!("{{\"error\":\"{code}\"}}"))
}

impl Issuer {
    /// Starts a server that answers each request to an endpoint with `answer`. It gets the request, and the number of
    /// requests to all endpoints before it.
    pub fn start(answer: impl Fn(&ReceivedRequest, usize) -> Vec<u8> + Send + Sync + 'static) -> Issuer {
        Self::with_metadata(
            |issuer| {
                format!(
                    "{{\"issuer\":\"{issuer}\",\"token_endpoint\":\"{issuer}/token\",\"device_authorization_endpoint\":\"{issuer}/device\"}}"
                )
            },
            answer,
        )
    }

    /// Like [`Issuer::start`], with other metadata. `metadata` gets the issuer.
    pub fn with_metadata(
        metadata: impl Fn(&str) -> String + Send + Sync + 'static,
        respond: impl Fn(&ReceivedRequest, usize) -> Vec<u8> + Send + Sync + 'static,
    ) -> Issuer {
        let count = Arc::new(AtomicUsize::new(0));
        let server = Upstream::plain(move |request| {
            let issuer = format!("http://{}", request.header("host").unwrap_or_default());
            match request.path() {
                METADATA => json(&metadata(&issuer)),
                path if path.starts_with("/.well-known/") => answer("404 Not Found", "", ""),
                _ => respond(request, count.fetch_add(1, Ordering::SeqCst)),
            }
        });
        Issuer { server }
    }

    /// The URL of the issuer.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port())
    }

    /// The requests so far to `path`.
    pub fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        self.server.requests().into_iter().filter(|request| request.path() == path).collect()
    }
}
