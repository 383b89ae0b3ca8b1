//! Sends whole requests: any scheme, any authority, any header, bodies that are too long or never end, many at once.
//!
//! The argument is one text of parts with `|` between them: `METHOD URL`, then any of
//! `header NAME: VALUE`, `body BYTES`, `unfinished`, `connect MS`, `first MS`, `between MS`, `times N`, `parallel N`, `sent`,
//! `show BYTES`, `quiet`, `fail`.

use std::fmt::Debug;

use belljar_guest::{Error, Result};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

#[derive(Default)]
struct Order<'a> {
    method: &'a str,
    url: &'a str,
    headers: Vec<(&'a str, &'a str)>,
    body: Option<usize>,
    unfinished: bool,
    waits: [Option<u64>; 3],
    times: usize,
    parallel: usize,
    sent: bool,
    show: usize,
    quiet: bool,
    fail: bool,
}

/// Sends the requests that `text` describes. Returns the outcomes as text.
pub(crate) fn fetch(text: &str) -> Result<String> {
    let order = read(text);
    let mut outcomes = Vec::new();
    if order.parallel > 1 {
        let asked: Vec<_> = (0..order.parallel).map(|_| ask(&order)).collect();
        outcomes.extend(asked.into_iter().map(|asked| asked.and_then(|(future, _)| answer(&order, future))));
    } else {
        for _ in 0..order.times.max(1) {
            outcomes.push(ask(&order).and_then(|(future, seen)| Ok(seen + &answer(&order, future)?)));
        }
    }
    if order.fail {
        return outcomes
            .into_iter()
            .collect::<std::result::Result<Vec<_>, _>>()
            .map(|all| all.join("\n"))
            .map_err(Error::failed);
    }
    Ok(outcomes
        .into_iter()
        .map(|one| one.unwrap_or_else(|why| format!("refused: {why}")))
        .collect::<Vec<_>>()
        .join("\n"))
}

fn read(text: &str) -> Order<'_> {
    let mut order = Order { show: 4000, ..Order::default() };
    for part in text.split('|') {
        let (word, rest) = part.split_once(' ').unwrap_or((part, ""));
        let number = || rest.parse::<u64>().unwrap_or(0);
        let size = || usize::try_from(number()).unwrap_or(usize::MAX);
        match word {
            "header" => order.headers.extend(rest.split_once(": ")),
            "body" => order.body = Some(size()),
            "unfinished" => order.unfinished = true,
            "connect" => order.waits[0] = Some(number()),
            "first" => order.waits[1] = Some(number()),
            "between" => order.waits[2] = Some(number()),
            "times" => order.times = size(),
            "parallel" => order.parallel = size(),
            "sent" => order.sent = true,
            "show" => order.show = size(),
            "quiet" => order.quiet = true,
            "fail" => order.fail = true,
            method => (order.method, order.url) = (method, rest),
        }
    }
    order
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        "TRACE" => Method::Trace,
        other => Method::Other(other.to_owned()),
    }
}

/// The pending response to a sent request, and the text of its headers; or the reason why nothing was sent.
type SentRequest = std::result::Result<(FutureIncomingResponse, String), String>;

/// Sends one request.
fn ask(order: &Order<'_>) -> SentRequest {
    let fields = Fields::new();
    for (name, value) in &order.headers {
        fields.append(name, value.as_bytes()).map_err(|error| format!("header {name}: {error:?}"))?;
    }
    if let Some(bytes) = order.body {
        fields.append("content-length", bytes.to_string().as_bytes()).map_err(shown)?;
    }
    let request = OutgoingRequest::new(fields);
    request.set_method(&method(order.method)).map_err(|()| "method".to_owned())?;
    let (scheme, rest) = order.url.split_once("://").unwrap_or(("", order.url));
    let scheme = match scheme {
        "" => None,
        "http" => Some(Scheme::Http),
        "https" => Some(Scheme::Https),
        other => Some(Scheme::Other(other.to_owned())),
    };
    request.set_scheme(scheme.as_ref()).map_err(|()| "scheme".to_owned())?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    request.set_authority(Some(authority)).map_err(|()| "authority".to_owned())?;
    request.set_path_with_query(Some(path)).map_err(|()| "path".to_owned())?;
    let seen = if order.sent { listed("sent", &request.headers()) } else { String::new() };
    let options = RequestOptions::new();
    let nanos = |ms: u64| ms.saturating_mul(1_000_000);
    let [connect, first, between] = order.waits;
    options.set_connect_timeout(connect.map(nanos)).map_err(|()| "connect timeout".to_owned())?;
    options.set_first_byte_timeout(first.map(nanos)).map_err(|()| "first byte timeout".to_owned())?;
    options.set_between_bytes_timeout(between.map(nanos)).map_err(|()| "between bytes timeout".to_owned())?;
    let body = order.body.map(|bytes| request.body().map(|body| (body, bytes)).map_err(|()| "body".to_owned()));
    let future = handle(request, Some(options)).map_err(shown)?;
    if let Some((body, bytes)) = body.transpose()? {
        write(&body, bytes)?;
        if !order.unfinished {
            OutgoingBody::finish(body, None).map_err(shown)?;
        }
    }
    Ok((future, seen))
}

fn write(body: &OutgoingBody, mut bytes: usize) -> std::result::Result<(), String> {
    let stream = body.write().map_err(|()| "stream".to_owned())?;
    let piece = [b'b'; 4096];
    while let Some(now) = piece.get(..bytes.min(piece.len())).filter(|now| !now.is_empty()) {
        // An upstream that answers early closes the stream. Ignore this error, because the answer has more information.
        if stream.blocking_write_and_flush(now).is_err() {
            break;
        }
        bytes -= now.len();
    }
    Ok(())
}

fn answer(order: &Order<'_>, future: FutureIncomingResponse) -> std::result::Result<String, String> {
    future.subscribe().block();
    let response = future.get().ok_or("no answer")?.map_err(|()| "taken already")?.map_err(shown)?;
    drop(future);
    let mut text = format!("status {}\n", response.status());
    if !order.quiet {
        text.push_str(&listed("got", &response.headers()));
    }
    let (shown, total) = body(&response, order.show)?;
    text.push_str(&format!("{total} bytes\n{}", String::from_utf8_lossy(&shown)));
    Ok(text)
}

fn body(response: &IncomingResponse, show: usize) -> std::result::Result<(Vec<u8>, usize), String> {
    let body: IncomingBody = response.consume().map_err(|()| "no body".to_owned())?;
    let stream = body.stream().map_err(|()| "no stream".to_owned())?;
    let (mut kept, mut total) = (Vec::new(), 0);
    loop {
        match stream.blocking_read(64 << 10) {
            Ok(piece) => {
                total += piece.len();
                kept.extend(piece.into_iter().take(show.saturating_sub(kept.len())));
            }
            Err(StreamError::Closed) => return Ok((kept, total)),
            Err(StreamError::LastOperationFailed(error)) => {
                let code = wasip2::http::types::http_error_code(&error);
                return Err(format!("after {total} bytes: {code:?}"));
            }
        }
    }
}

fn listed(kind: &str, fields: &Fields) -> String {
    let line = |(name, value): (String, Vec<u8>)| format!("{kind} {name}: {}\n", String::from_utf8_lossy(&value));
    fields.entries().into_iter().map(line).collect()
}

fn shown(error: impl Debug) -> String {
    format!("{error:?}")
}
