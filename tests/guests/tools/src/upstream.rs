//! Sends a request, and waits for its answer.

use std::fmt::Debug;

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, Method, OutgoingRequest, Scheme};

fn shown(error: impl Debug) -> String {
    format!("{error:?}")
}

/// Sends a request without a body to `url`, a name with `http`.
pub(crate) fn send(method: &str, url: &str) -> Result<(), String> {
    let rest = url.strip_prefix("http://").ok_or("expected http")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let request = OutgoingRequest::new(Fields::new());
    let method = match method {
        "get" => Method::Get,
        "post" => Method::Post,
        other => return Err(format!("no step {other:?}")),
    };
    request.set_method(&method).map_err(shown)?;
    request.set_scheme(Some(&Scheme::Http)).map_err(shown)?;
    request.set_authority(Some(authority)).map_err(shown)?;
    request.set_path_with_query(Some(path)).map_err(shown)?;
    let future = handle(request, None).map_err(shown)?;
    future.subscribe().block();
    let response = future.get().ok_or("no answer")?.map_err(shown)?.map_err(shown)?;
    match response.status() {
        200..300 => Ok(()),
        status => Err(format!("status {status}")),
    }
}
