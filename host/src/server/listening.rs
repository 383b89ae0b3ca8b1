//! The address on which belljar listens: loopback addresses only.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};

use tokio::net::TcpListener;

use crate::model::Guard;

/// The text is not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address of this machine with a port, such as 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600")]
pub(crate) struct AddressError;

/// Why belljar cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// Other machines could reach the address.
    #[error(
        "\"{0}\" is not a loopback address, and this version of belljar has no authentication: anyone who reaches it could read everything; listen on 127.0.0.1:{port} and put an authenticating proxy in front",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The async runtime cannot be created.
    #[error(transparent)]
    Runtime(io::Error),
    /// The operating system refuses the address.
    #[error("cannot listen on \"{address}\": {error}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// Listens on `address`. Starts no thread, because threads started before the second wall stay outside it.
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn listen(address: SocketAddr) -> Result<StdListener, ListenError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(ListenError::Runtime)?;
    #[expect(clippy::disallowed_methods, reason = "the operator's address, checked to be loopback")]
    let bound = runtime.block_on(TcpListener::bind(address));
    bound.and_then(TcpListener::into_std).map_err(|error| ListenError::Bind { address, error })
}

/// Parses an address: an IP address with a port, `localhost` with a port, or a port alone. Host names are never looked
/// up.
///
/// # Errors
/// [`AddressError`] for any other text.
pub(crate) fn address(written: &str) -> Result<SocketAddr, AddressError> {
    if let Ok(address) = written.parse() {
        return Ok(address);
    }
    let port = match written.rsplit_once(':') {
        None => written,
        Some((host, port)) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => port,
        Some(_) => "",
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = is_port.then(|| port.parse().ok()).flatten();
    port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok_or(AddressError)
}

/// Checks that belljar may listen on `address`.
///
/// # Errors
/// If `address` is not a loopback address.
pub(crate) fn check_address(address: &SocketAddr) -> Result<(), ListenError> {
    if address.ip().is_loopback() || !Guard::Loopback.is_on() {
        return Ok(());
    }
    Err(ListenError::NotLoopback(*address))
}

#[cfg(test)]
mod tests {
    use super::{address, check_address};

    #[test]
    fn usual_spellings_of_addresses_are_parsed() {
        for local in ["8808", ":8808", "localhost:8808", "LOCALHOST:8808", "127.0.0.1:8808"] {
            assert_eq!(address(local), Ok("127.0.0.1:8808".parse().unwrap()), "{local}");
        }
        assert_eq!(address("[::1]:8808"), Ok("[::1]:8808".parse().unwrap()));
        assert_eq!(address("0"), Ok("127.0.0.1:0".parse().unwrap()));
        // `address` parses other addresses too; `check_address` refuses them.
        assert!(check_address(&address("0.0.0.0:80").unwrap()).is_err());
        for bad in [
            "",
            ":",
            "localhost",
            "localhost:",
            "localhost:x",
            "65536",
            "+80",
            "-1",
            "evil.example:80",
            "::1:80",
            "a.localhost:80",
        ] {
            assert!(address(bad).unwrap_err().to_string().contains("expected an address"), "{bad}");
        }
    }

    #[test]
    fn only_loopback_addresses_are_allowed() {
        for fine in ["127.0.0.1:1", "127.9.9.9:0", "[::1]:80"] {
            assert!(check_address(&fine.parse().unwrap()).is_ok(), "{fine}");
        }
        for open in ["0.0.0.0:80", "[::]:80", "192.168.1.1:80", "[::ffff:127.0.0.1]:80", "8.8.8.8:80"] {
            assert!(
                check_address(&open.parse().unwrap()).unwrap_err().to_string().contains("no authentication"),
                "{open}"
            );
        }
    }
}
