//! The address on which belljar listens. Any but a loopback address needs authentication, encryption and a name. A proxy
//! in front needs authentication.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use tokio::net::TcpListener;

use crate::config::Config;
use crate::model::Guard;

/// Why belljar cannot listen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// Other machines could read everything.
    #[error(
        "\"{0}\" is not a loopback address, and there is no authentication: anyone who reaches it could read everything; add [auth] to the configuration, or listen on 127.0.0.1:{port}",
        port = .0.port()
    )]
    NotLoopback(SocketAddr),
    /// The clients of the proxy could read everything.
    #[error(
        "[serve] has  behind = \"proxy\", and there is no authentication: anyone who reaches the proxy could read everything; add [auth] to the configuration, or remove  behind  and  trusted"
    )]
    OpenProxy,
    /// Keys and tokens would be readable on the way.
    #[error(
        "\"{0}\" is not a loopback address, and there is no TLS: keys and tokens would cross the network unencrypted; add  tls = {{ cert = \"cert.pem\", key = \"key.pem\" }}  or, if a proxy ends TLS,  behind = \"proxy\"  to [serve], or listen on 127.0.0.1:{port}",
        port = .0.port()
    )]
    Unencrypted(SocketAddr),
    /// No request could have a valid `Host` header.
    #[error(
        "\"{0}\" is not a loopback address, and the server has no name: every request would be refused for its Host header; add  url = \"https://NAME/mcp\"  or  hosts = [\"NAME\"]  to [serve]"
    )]
    Nameless(SocketAddr),
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
    #[expect(clippy::disallowed_methods, reason = "the operator's address, which was checked")]
    let bound = runtime.block_on(TcpListener::bind(address));
    bound.and_then(TcpListener::into_std).map_err(|error| ListenError::Bind { address, error })
}

/// Checks that belljar may listen on `address` with this configuration. `None`: without a configuration, as
/// `belljar dev` does.
///
/// # Errors
/// If requests of other machines would be unauthenticated, unencrypted, or all refused.
pub(crate) fn check_address(address: &SocketAddr, config: Option<&Config>) -> Result<(), ListenError> {
    if !Guard::Loopback.is_on() {
        return Ok(());
    }
    // Behind a proxy, the clients are on other machines, whatever the address.
    if config.is_some_and(|config| config.serve.trusted.is_some() && config.auth.is_none()) {
        return Err(ListenError::OpenProxy);
    }
    if address.ip().is_loopback() {
        return Ok(());
    }
    let Some(config) = config.filter(|config| config.auth.is_some()) else {
        return Err(ListenError::NotLoopback(*address));
    };
    let serve = &config.serve;
    if serve.tls.is_none() && serve.trusted.is_none() {
        return Err(ListenError::Unencrypted(*address));
    }
    if serve.url.is_none() && serve.hosts.is_empty() {
        return Err(ListenError::Nameless(*address));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_address;
    use crate::config::{Config, ConfigInput};

    /// The error for this address and configuration, or nothing.
    fn refused(address: &str, text: Option<&str>) -> String {
        let config = text.map(|text| {
            let file = Some(("/etc/belljar.toml".into(), text.to_owned()));
            Config::read(ConfigInput { file, directory: "/".into(), ..ConfigInput::default() }).unwrap()
        });
        let checked = check_address(&address.parse().unwrap(), config.as_ref());
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }

    const OPEN: [&str; 5] = ["0.0.0.0:80", "[::]:80", "192.168.1.1:80", "[::ffff:127.0.0.1]:80", "8.8.8.8:80"];

    #[test]
    fn without_authentication_only_loopback_addresses_are_allowed() {
        for fine in ["127.0.0.1:1", "127.9.9.9:0", "[::1]:80"] {
            assert_eq!(refused(fine, None), "", "{fine}");
            assert_eq!(refused(fine, Some("")), "", "{fine}");
        }
        let tls = "[serve]\nurl = \"https://a.example/mcp\"\ntls = { cert = \"c\", key = \"k\" }";
        for open in OPEN {
            for config in [None, Some(""), Some(tls)] {
                assert!(refused(open, config).contains("no authentication"), "{open}");
            }
        }
    }

    #[test]
    fn a_proxy_needs_authentication_on_every_address() {
        let proxy = "[serve]\nbehind = \"proxy\"\ntrusted = [\"127.0.0.1\"]\nurl = \"https://a.example/mcp\"\n";
        for address in ["127.0.0.1:80", "[::1]:80", "192.168.1.1:80"] {
            let why = refused(address, Some(proxy));
            assert!(why.contains("no authentication") && why.contains("add [auth]"), "{address}: {why}");
            assert_eq!(refused(address, Some(&format!("[auth]\n{proxy}"))), "", "{address}");
        }
    }

    #[test]
    fn an_open_address_needs_authentication_encryption_and_a_name() {
        let [tls, proxy] = ["tls = { cert = \"c\", key = \"k\" }", "behind = \"proxy\"\ntrusted = [\"10.0.0.0/8\"]"];
        let (url, hosts) = ("url = \"https://a.example/mcp\"", "hosts = [\"a.example\"]");
        for open in OPEN {
            assert!(refused(open, Some("[auth]\n[serve]\n")).contains("behind = \"proxy\""), "{open}");
            for protection in [tls, proxy] {
                let config = format!("[auth]\n[serve]\n{protection}\n");
                assert!(refused(open, Some(&config)).contains("hosts = "), "{open}");
                for name in [url, hosts] {
                    assert_eq!(refused(open, Some(&format!("{config}{name}\n"))), "", "{open}");
                }
            }
        }
    }
}
