//! Attempts to reach the network: by HTTP, by sockets, by DNS.

use std::fmt::Debug;
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use belljar_guest::Error;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{ErrorCode, Fields, OutgoingRequest, Scheme};

/// Sends a GET request to `http://HOST/?secret=1`. Returns the status or the error.
pub(crate) fn http(host: &str) -> String {
    let ask = || -> Result<u16, String> {
        let request = OutgoingRequest::new(Fields::new());
        request.set_scheme(Some(&Scheme::Http)).map_err(|()| "no scheme".to_owned())?;
        request.set_authority(Some(host)).map_err(|()| "no authority".to_owned())?;
        request.set_path_with_query(Some("/?secret=1")).map_err(|()| "no path".to_owned())?;
        let response = handle(request, None).map_err(shown)?;
        response.subscribe().block();
        let answered = response.get().ok_or("no answer")?.map_err(|()| "taken already")?;
        Ok(answered.map_err(shown)?.status())
    };
    ask().map_or_else(|why| format!("refused: {why}"), |status| format!("reached: {status}"))
}

/// Gets URLs, separated by spaces. Fails with the error of the first one that cannot be reached, as an honest provider
/// does.
pub(crate) fn reach(urls: &str) -> Result<String, Error> {
    let statuses: Result<Vec<String>, Error> = urls.split(' ').map(get).collect();
    statuses.map(|statuses| statuses.join(" "))
}

/// Gets URLs, separated by spaces, and ignores errors. Returns the outcome of the last one.
pub(crate) fn flood(urls: &str) -> String {
    let outcomes = urls.split(' ').map(|url| get(url).unwrap_or_else(|error| format!("refused: {error:?}")));
    outcomes.fold(String::new(), |_, last| last)
}

fn get(url: &str) -> Result<String, Error> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| Error::invalid("a URL without a scheme"))?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let request = OutgoingRequest::new(Fields::new());
    let set = request
        .set_scheme(Some(&scheme))
        .and_then(|()| request.set_authority(Some(authority)))
        .and_then(|()| request.set_path_with_query(Some(&format!("/{path}"))));
    set.map_err(|()| Error::invalid("a URL that cannot be asked for"))?;
    let failed = |error: ErrorCode| match error {
        ErrorCode::HttpRequestDenied => Error::denied("the request was refused"),
        other => Error::unavailable(format_args!("{other:?}")),
    };
    let response = handle(request, None).map_err(failed)?;
    response.subscribe().block();
    let answered = response.get().and_then(Result::ok).ok_or_else(|| Error::unavailable("no answer"))?;
    Ok(answered.map_err(failed)?.status().to_string())
}

/// `COUNT/LENGTH`: creates `COUNT` header fields with values of `LENGTH` bytes. Returns the number before an error.
pub(crate) fn fields(argument: &str) -> String {
    let (count, length) = argument.split_once('/').unwrap_or((argument, "1"));
    let (count, length) = (count.parse().unwrap_or(0usize), length.parse().unwrap_or(0usize));
    let fields = Fields::new();
    let value = vec![b'v'; length];
    for n in 0..count {
        if let Err(error) = fields.append(&format!("x-{n}"), &value) {
            return format!("{n} fields, then {error:?}");
        }
    }
    format!("{count} fields")
}

/// Connects to `HOST:PORT`.
pub(crate) fn tcp(address: &str) -> String {
    outcome(TcpStream::connect(address))
}

/// Sends a datagram to `HOST:PORT`.
pub(crate) fn udp(address: &str) -> String {
    outcome(UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(b"hostile", address)))
}

/// Listens on `HOST:PORT`.
pub(crate) fn listen(address: &str) -> String {
    outcome(TcpListener::bind(address))
}

/// Looks up a host name.
pub(crate) fn dns(name: &str) -> String {
    outcome((name, 80).to_socket_addrs().map(Vec::from_iter))
}

/// The outcome of an attempt, as text.
fn outcome<T: Debug>(done: std::io::Result<T>) -> String {
    done.map_or_else(|error| format!("refused: {:?}: {error}", error.kind()), |got| format!("reached: {got:?}"))
}

fn shown(error: impl Debug) -> String {
    format!("{error:?}")
}
