//! A client of a server with TLS, for tests of belljar's own certificate.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore, StreamOwned, SupportedProtocolVersion};

/// The longest wait for the server.
const READ_TIME: Duration = Duration::from_secs(60);

/// A finished exchange.
#[derive(Debug)]
pub struct TlsExchange {
    /// The bytes of the answer, until the server closed the connection.
    pub answer: String,
    /// The protocol version of the connection.
    pub version: Option<ProtocolVersion>,
    /// The negotiated application protocol.
    pub protocol: Option<Vec<u8>>,
    /// The server's own certificate, in DER.
    pub certificate: Vec<u8>,
}

/// Sends `request` to a server that must have a certificate of the authority `ca` (in PEM) for `name`.
///
/// # Errors
/// The handshake failed, or the server sent nothing.
pub fn exchange(
    address: SocketAddr,
    (ca, name): (&str, &str),
    versions: &[&'static SupportedProtocolVersion],
    request: &[u8],
) -> io::Result<TlsExchange> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).map_err(io::Error::other)?).map_err(io::Error::other)?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_protocol_versions(versions).map_err(io::Error::other)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let session = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(READ_TIME))?;
    let mut stream = StreamOwned::new(session, socket);
    stream.write_all(request)?;
    let mut answer = Vec::new();
    // A server that closes without `close_notify` ends the answer too.
    if let Err(error) = stream.read_to_end(&mut answer)
        && answer.is_empty()
    {
        return Err(error);
    }
    let certificate = stream.conn.peer_certificates().and_then(|chain| chain.first());
    Ok(TlsExchange {
        answer: String::from_utf8_lossy(&answer).into_owned(),
        version: stream.conn.protocol_version(),
        protocol: stream.conn.alpn_protocol().map(<[u8]>::to_vec),
        certificate: certificate.map(|certificate| certificate.to_vec()).unwrap_or_default(),
    })
}

/// TLS 1.2 and TLS 1.3.
pub static VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// A version of TLS that a client offers.
pub type TlsVersion = SupportedProtocolVersion;
