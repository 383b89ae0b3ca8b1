//! Tests of certificates and keys. The pairs are made by `openssl` and valid for 100 years.

use super::*;

const CERT: &[u8] = include_bytes!("tests/cert.pem");
const KEY: &[u8] = include_bytes!("tests/key.pem");
const OTHER_KEY: &[u8] = include_bytes!("tests/other-key.pem");

fn pem(cert: &[u8], key: &[u8]) -> TlsPem {
    TlsPem { cert: cert.to_vec(), key: Zeroizing::new(key.to_vec()) }
}

#[test]
fn a_pair_is_used_only_if_both_files_fit_together() {
    assert!(TlsIdentity::new(&pem(CERT, KEY)).is_ok());
    assert!(TlsIdentity::new(&pem(&[KEY, CERT].concat(), &[CERT, KEY].concat())).is_ok(), "other entries are skipped");
    for (cert, key, expected) in [
        (&b""[..], KEY, "there is no certificate"),
        (b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", KEY, "not PEM"),
        (CERT, b"", "there is no private key"),
        (CERT, CERT, "there is no private key"),
        (CERT, b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n", "cannot be used together"),
        (CERT, OTHER_KEY, "cannot be used together"),
        (KEY, KEY, "there is no certificate"),
    ] {
        let error = TlsIdentity::new(&pem(cert, key)).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_bad_pair_keeps_the_last_good_one() {
    let identity = TlsIdentity::new(&pem(CERT, KEY)).unwrap();
    let first = identity.0.load_full();
    assert!(identity.replace(&pem(CERT, OTHER_KEY)).is_err());
    assert!(Arc::ptr_eq(&first, &identity.0.load_full()));
    assert!(!identity.replace(&pem(CERT, KEY)).unwrap(), "it is the same pair");
    assert!(identity.replace(&pem(&[CERT, b"\n"].concat(), KEY)).unwrap());
    assert!(!Arc::ptr_eq(&first, &identity.0.load_full()));
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_does_not_hold_the_handshake() {
    let identity = TlsIdentity::new(&pem(CERT, KEY)).unwrap();
    let (_silent, stream) = tokio::io::duplex(1024);
    let began = tokio::time::Instant::now();
    assert!(identity.accept(stream, Duration::from_secs(10)).await.is_none());
    assert_eq!(began.elapsed(), Duration::from_secs(10));
}

#[tokio::test]
async fn plain_http_on_a_port_with_tls_is_refused() {
    use tokio::io::AsyncWriteExt as _;
    let identity = TlsIdentity::new(&pem(CERT, KEY)).unwrap();
    let (mut client, stream) = tokio::io::duplex(1024);
    client.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    assert!(identity.accept(stream, Duration::from_secs(10)).await.is_none());
}
