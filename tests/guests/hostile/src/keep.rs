//! Makes the host allocate resources, and never drops them: `KIND/COUNT/BYTES`. Ignores the rest of the argument.

use std::hint::black_box;
use std::mem::forget;

use wasip2::cli::environment::{get_arguments, get_environment};
use wasip2::cli::stderr::get_stderr;
use wasip2::cli::stdin::get_stdin;
use wasip2::cli::stdout::get_stdout;
use wasip2::clocks::monotonic_clock::{subscribe_duration, subscribe_instant};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, Method, OutgoingBody, OutgoingRequest, OutgoingResponse, RequestOptions, Scheme};
use wasip2::io::poll::poll;
use wasip2::io::streams::StreamError;
use wasip2::random::{insecure::get_insecure_random_bytes, random::get_random_bytes};
use wasip2::sockets::instance_network::instance_network;
use wasip2::sockets::ip_name_lookup::resolve_addresses;

/// The most bytes of one write.
const PIECE: usize = 1 << 20;

/// Allocates resources. Returns their number, and the error of the host that stopped the allocation.
pub(crate) fn keep(argument: &str) -> String {
    let mut parts = argument.split('/');
    let kind = parts.next().unwrap_or_default();
    let mut number = || parts.next().and_then(|part| part.parse().ok()).unwrap_or(0usize);
    let (count, bytes) = (number(), number());
    if kind == "text" {
        return "\u{1}".repeat(bytes);
    }
    if kind == "list" {
        let timer = subscribe_duration(u64::MAX);
        return format!("{} are ready", poll(&vec![&timer; bytes]).len());
    }
    let text = "x".repeat(if kind_has_text(kind) { bytes } else { 0 });
    for done in 0..count {
        if let Err(why) = one(kind, bytes, &text) {
            return format!("{done} {kind} of {count}, then {why}");
        }
    }
    format!("{count} {kind}")
}

fn kind_has_text(kind: &str) -> bool {
    ["method", "scheme", "authority", "path", "query", "fields", "copies", "replaced", "trailers", "name"]
        .contains(&kind)
}

/// Allocates one resource of this kind, and does not drop it.
fn one(kind: &str, bytes: usize, text: &str) -> Result<(), String> {
    match kind {
        "bodies" => forget(written(request(), bytes, 1)?),
        // Keeps one handle: that of the request.
        "finished" => {
            let (request, body, stream) = written(request(), bytes, 1)?;
            drop(stream);
            OutgoingBody::finish(body, None).map_err(shown)?;
            forget(request);
        }
        // Keeps no handle.
        "dropped" => {
            // A child resource must be dropped before its parent.
            let (request, body, stream) = written(request(), bytes, 1)?;
            drop(stream);
            drop(body);
            drop(request);
        }
        "pieces" => forget(written(request(), bytes, 100)?),
        "zeroes" => {
            let request = request();
            let body = request.body().map_err(|()| "no body")?;
            let stream = body.write().map_err(|()| "no stream")?;
            for _ in 0..2 {
                stream.write_zeroes(stream.check_write().map_err(shown)?.min(bytes as u64)).map_err(shown)?;
            }
            forget((request, body, stream));
        }
        "spliced" => {
            let request = request();
            let body = request.body().map_err(|()| "no body")?;
            let stream = body.write().map_err(|()| "no stream")?;
            let input = get_stdin();
            // Standard input is empty.
            let _ = stream.splice(&input, bytes as u64);
            forget((request, body, stream, input));
        }
        "responses" => {
            let response = OutgoingResponse::new(Fields::new());
            let body = response.body().map_err(|()| "no body")?;
            let stream = body.write().map_err(|()| "no stream")?;
            stream.write(&vec![b'r'; bytes.min(PIECE)]).map_err(shown)?;
            forget((response, body, stream));
        }
        "method" => {
            let request = request();
            set(request.set_method(&Method::Other(text.to_owned())))?;
            forget(request);
        }
        "scheme" => {
            let request = request();
            set(request.set_scheme(Some(&Scheme::Other(text.to_owned()))))?;
            forget(request);
        }
        "authority" => {
            let request = request();
            set(request.set_authority(Some(text)))?;
            forget(request);
        }
        "path" => {
            let request = request();
            set(request.set_path_with_query(Some(&format!("/{text}"))))?;
            forget(request);
        }
        "query" => {
            let request = request();
            set(request.set_path_with_query(Some(&format!("/?{text}"))))?;
            forget(request);
        }
        "fields" => forget(fields(1, text)?),
        "empty-fields" => forget(fields(bytes, "")?),
        "listed-fields" => {
            let list: Vec<_> = (0..bytes).map(|n| (format!("x{n}"), Vec::new())).collect();
            forget(Fields::from_list(&list).map_err(shown)?);
        }
        "values" => {
            let fields = Fields::new();
            fields.set("x", &vec![Vec::new(); bytes]).map_err(shown)?;
            forget(fields);
        }
        // The host makes a real copy when the clone changes.
        "copies" => {
            let fields = fields(1, text)?;
            for _ in 0..10 {
                let copy = fields.clone();
                copy.append("y", b"1").map_err(shown)?;
                forget(copy);
            }
        }
        "headers" => {
            let request = OutgoingRequest::new(fields(bytes, "")?);
            for _ in 0..10 {
                let copy = request.headers().clone();
                copy.append("y", b"1").map_err(shown)?;
                forget(copy);
            }
        }
        // Sets the same field many times.
        "replaced" => {
            let fields = Fields::new();
            for _ in 0..100 {
                fields.set("x", &[text.as_bytes().to_vec()]).map_err(shown)?;
            }
        }
        "trailers" => {
            let request = request();
            let body = request.body().map_err(|()| "no body")?;
            OutgoingBody::finish(body, Some(fields(1, text)?)).map_err(shown)?;
            drop(request);
        }
        "options" => forget(RequestOptions::new()),
        "futures" => {
            let request = OutgoingRequest::new(fields(bytes, "")?);
            set(request.set_authority(Some("localhost")))?;
            set(request.set_path_with_query(Some("/")))?;
            forget(handle(request, None).map_err(shown)?);
        }
        "timers" => forget((subscribe_duration(u64::MAX), subscribe_instant(u64::MAX))),
        "streams" => {
            let (input, output) = (get_stdin(), get_stdout());
            let awaited = (input.subscribe(), output.subscribe());
            forget((input, output, awaited, get_stderr()));
        }
        "networks" => forget(instance_network()),
        "name" => forget(resolve_addresses(&instance_network(), text)),
        "random" => drop(black_box(get_random_bytes(bytes as u64))),
        "insecure" => drop(black_box(get_insecure_random_bytes(bytes as u64))),
        "environment" => drop(black_box((get_environment(), get_arguments()))),
        "printed" => get_stdout().blocking_write_and_flush(&vec![b'p'; bytes.min(4096)]).map_err(shown)?,
        "errors" => {
            let fields = Fields::new();
            fields.append("content-length", b"1").map_err(shown)?;
            let request = OutgoingRequest::new(fields);
            let body = request.body().map_err(|()| "no body")?;
            let stream = body.write().map_err(|()| "no stream")?;
            if let Err(StreamError::LastOperationFailed(error)) = stream.write(b"two") {
                black_box(error.to_debug_string());
                forget(error);
            }
        }
        _ => return Err("no such thing".to_owned()),
    }
    Ok(())
}

fn request() -> OutgoingRequest {
    OutgoingRequest::new(Fields::new())
}

/// Creates `count` fields with this value. Fails with the error of the host.
fn fields(count: usize, value: &str) -> Result<Fields, String> {
    let fields = Fields::new();
    for n in 0..count {
        fields.append(&format!("x{n}"), value.as_bytes()).map_err(shown)?;
    }
    Ok(fields)
}

type Written = (OutgoingRequest, OutgoingBody, wasip2::io::streams::OutputStream);

/// Writes a body of `bytes` bytes in `parts` parts, as far as the stream accepts them without a reader.
fn written(request: OutgoingRequest, bytes: usize, parts: usize) -> Result<Written, String> {
    let body = request.body().map_err(|()| "no body")?;
    let stream = body.write().map_err(|()| "no stream")?;
    let piece = vec![b'b'; (bytes / parts).min(PIECE)];
    for _ in 0..parts * 2 {
        if stream.check_write().map_err(shown)? < piece.len() as u64 {
            break;
        }
        stream.write(&piece).map_err(shown)?;
    }
    Ok((request, body, stream))
}

fn set(result: Result<(), ()>) -> Result<(), String> {
    result.map_err(|()| "it is refused".to_owned())
}

fn shown(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
