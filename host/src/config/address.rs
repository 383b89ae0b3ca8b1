//! The address on which belljar listens, as the operator writes it.

use std::net::{Ipv4Addr, SocketAddr};

/// The text is not an address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address of this machine with a port, such as 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600")]
pub struct AddressError;

/// Parses an address: an IP address with a port, `localhost` with a port, or a port alone. Host names are never looked
/// up.
///
/// # Errors
/// [`AddressError`] for any other text.
pub fn listen_address(written: &str) -> Result<SocketAddr, AddressError> {
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

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn usual_spellings_of_addresses_are_parsed() {
        for local in ["8808", ":8808", "localhost:8808", "LOCALHOST:8808", "127.0.0.1:8808"] {
            assert_eq!(listen_address(local), Ok("127.0.0.1:8808".parse().unwrap()), "{local}");
        }
        assert_eq!(listen_address("[::1]:8808"), Ok("[::1]:8808".parse().unwrap()));
        assert_eq!(listen_address("0"), Ok("127.0.0.1:0".parse().unwrap()));
        assert_eq!(listen_address("0.0.0.0:80"), Ok("0.0.0.0:80".parse().unwrap()));
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
            assert!(listen_address(bad).unwrap_err().to_string().contains("expected an address"), "{bad}");
        }
    }
}
