//! Headers of requests and responses: those that a provider may not set, and those that a response must not have.
//!
//! A grant allows methods and paths. A header that makes an upstream use another method, path, host or client address
//! would bypass the grant, so belljar refuses this header.
//!
//! If the host adds a secret to a request, the response must be complete and uncompressed. Otherwise a secret in the
//! response could escape the redactor.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{HeaderMap, StatusCode, response};
use mediatype::MediaType;
use wasmtime_wasi_http::Error;

use crate::grants::secrets::Redactor;
use crate::model::Guard;

/// Headers that carry credentials. A provider may set one only if the grant lists it in `allow-headers`.
pub(super) const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];

/// Other headers that servers accept credentials in. A provider may set none of them.
const ALSO_CREDENTIALS: &[&str] =
    &["cookie2", "proxy-authorization", "x-authorization", "remote-user", "x-remote-user"];

/// Headers that make servers use another method, path, host or client address than the request has.
const OVERRIDES: &[&str] = &[
    "base-url",
    "client-ip",
    "cf-connecting-ip",
    "destination",
    "fastly-client-ip",
    "forwarded",
    "front-end-https",
    "http-method-override",
    "max-forwards",
    "method-override",
    "profile-http-method",
    "proxy",
    "proxy-host",
    "proxy-url",
    "real-ip",
    "redirect",
    "request-uri",
    "script-name",
    "true-client-ip",
    "uri",
    "url",
    "via",
    "x-accel-redirect",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-custom-ip-authorization",
    "x-host",
    "x-http-destinationurl",
    "x-http-host-override",
    "x-originating-ip",
    "x-original-host",
    "x-path-info",
    "x-proxy-url",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-real-method",
    "x-remote-addr",
    "x-remote-ip",
    "x-request-uri",
    "x-request-url",
    "x-script-name",
    "x-sendfile",
    "x-target-url",
    "x-uri",
    "x-url",
    "x-verb",
];

/// Prefixes of such headers.
const OVERRIDE_FAMILIES: &[&str] = &[
    "x-envoy-",
    "x-forwarded",
    "x-http-method",
    "x-http-path",
    "x-http-url",
    "x-http-verb",
    "x-method",
    "x-middleware-",
    "x-original",
    "x-override",
    "x-requested-method",
    "x-rewrite",
];

/// Headers of the connection and of the framing. Only the host sets them.
const CONNECTION_HEADERS: &[&str] =
    &["expect", "te", "trailer", "trailers", "upgrade", "connection", "keep-alive", "http2-settings"];

/// Headers that request a part of a response, or another encoding.
const PARTIAL_RESPONSE_HEADERS: &[&str] = &[
    "a-im",
    "accept-charset",
    "accept-encoding",
    "accept-ranges",
    "available-dictionary",
    "dictionary-id",
    "if-range",
    "range",
    "request-range",
    "te",
    "want-content-digest",
    "want-digest",
    "want-repr-digest",
    "x-range",
];

/// Headers with a digest of the body, which is wrong after masking.
const DIGESTS: &[&str] = &["content-digest", "content-md5", "digest", "repr-digest", "x-content-digest"];

/// Query parameters that make servers use another method than the request has.
const OVERRIDE_PARAMETERS: &[&str] = &[
    "_method",
    "_http_method",
    "_httpmethod",
    "x_http_method",
    "x_http_method_override",
    "x_method_override",
    "http_method_override",
];

/// The name as servers read it that treat `-` and `_` as equal (CGI, WSGI, PHP).
fn folded(name: &str) -> String {
    name.replace('_', "-").to_ascii_lowercase()
}

/// True if two names are equal for servers that treat `-` and `_` as equal.
pub(super) fn is_same(one: &HeaderName, other: &HeaderName) -> bool {
    one == other || folded(one.as_str()) == folded(other.as_str())
}

/// Returns `found`, or false if [`Guard::Override`] is off. `found` says that the request has something that makes an
/// upstream read another request.
pub(super) fn overrides_request(found: bool) -> bool {
    found && Guard::Override.is_on()
}

/// Returns `found`, or false if [`Guard::Credential`] is off. `found` says that the request has a header with
/// credentials.
pub(super) fn carries_credential(found: bool) -> bool {
    found && Guard::Credential.is_on()
}

/// True if no provider may set this header, whatever is granted.
pub(super) fn is_forbidden(name: &HeaderName) -> bool {
    let name = folded(name.as_str());
    let is_in = |all: &[&str]| all.contains(&name.as_str());
    let overrides = is_in(OVERRIDES) || OVERRIDE_FAMILIES.iter().any(|family| name.starts_with(family));
    overrides_request(overrides || is_in(CONNECTION_HEADERS)) || carries_credential(is_in(ALSO_CREDENTIALS))
}

/// True if a query parameter of this decoded name makes servers use another method than the request has.
pub(super) fn overrides_method(parameter: &str) -> bool {
    overrides_request(OVERRIDE_PARAMETERS.contains(&parameter_name(parameter).as_str()))
}

/// The name of a parameter as the most lenient servers read it. They ignore case, leading spaces, and everything after
/// `[` or NUL. They treat `.`, `-` and space as `_`.
pub(super) fn parameter_name(name: &str) -> String {
    let name = name.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
    let name = name.split(['[', '\0']).next().unwrap_or(name);
    name.trim_end().chars().map(|c| if matches!(c, '.' | '-' | ' ') { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Removes headers that request a partial or encoded response, and requests an uncompressed one.
pub(super) fn request_whole_response(headers: &mut HeaderMap) {
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names.iter().filter(|name| PARTIAL_RESPONSE_HEADERS.contains(&folded(name.as_str()).as_str())) {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Checks that secrets can be found in a response: it is complete and not encoded.
///
/// # Errors
/// The error for the guest instead of the response.
pub(super) fn check_maskable(response: &response::Parts) -> Result<(), Error> {
    if !Guard::Whole.is_on() {
        return Ok(());
    }
    let partial = [StatusCode::PARTIAL_CONTENT, StatusCode::IM_USED];
    if partial.contains(&response.status) {
        return Err(Error::HttpResponseContentCoding(Some("partial".to_owned())));
    }
    if has_other_coding(&response.headers, &CONTENT_ENCODING, "identity") {
        return Err(Error::HttpResponseContentCoding(None));
    }
    if has_other_coding(&response.headers, &TRANSFER_ENCODING, "chunked") {
        return Err(Error::HttpResponseTransferCoding(None));
    }
    if response.headers.get_all(CONTENT_TYPE).iter().any(|value| !keeps_ascii(value)) {
        return Err(Error::HttpResponseContentCoding(Some("charset".to_owned())));
    }
    Ok(())
}

/// True if a list of codings contains another one than `plain`.
fn has_other_coding(headers: &HeaderMap, name: &HeaderName, plain: &str) -> bool {
    let is_plain =
        |coding: &[u8]| coding.trim_ascii().is_empty() || coding.trim_ascii().eq_ignore_ascii_case(plain.as_bytes());
    headers.get_all(name).iter().any(|value| !value.as_bytes().split(|b| *b == b',').all(is_plain))
}

/// Prefixes of the names of character sets in which bytes of ASCII letters mean something else.
const NON_ASCII_CHARSETS: &[&str] =
    &["utf-7", "utf7", "unicode-1-1-utf-7", "scsu", "bocu", "ebcdic", "ibm", "cp", "hz", "iso-2022"];

/// Exceptions from [`NON_ASCII_CHARSETS`]: character sets of IBM and Microsoft that keep ASCII letters.
const ASCII_CHARSETS: &[&str] =
    &["ibm437", "cp437", "ibm850", "cp850", "ibm866", "cp866", "cp125", "cp932", "cp936", "cp949", "cp950"];

/// True if content of this type keeps ASCII letters, and is not a multipart list of byte ranges.
fn keeps_ascii(value: &HeaderValue) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    if text.trim_start().starts_with("multipart/byteranges") {
        return false;
    }
    // Clients look for this word even if the syntax is broken.
    let parsed = MediaType::parse(&text).ok();
    let charset = parsed.and_then(|parsed| {
        let charset = parsed.params.iter().find(|(name, _)| name.as_str() == "charset");
        charset.map(|(_, value)| value.unquoted_str().into_owned())
    });
    let charset = charset.or_else(|| {
        let (_, after) = text.split_once("charset=")?;
        Some(after.trim_start_matches('"').split(['"', ';', ' ']).next()?.to_owned())
    });
    charset.is_none_or(|charset| {
        ASCII_CHARSETS.iter().any(|same| charset.starts_with(same))
            || !NON_ASCII_CHARSETS.iter().any(|other| charset.starts_with(other))
    })
}

/// Masks secrets in headers, and removes digests of the unmasked body.
pub(super) fn mask(redactor: &Redactor, headers: &mut HeaderMap) {
    let masked = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        redactor.mask_bytes(&mut bytes).then_some(bytes)
    };
    for value in headers.values_mut() {
        if let Some(bytes) = masked(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("***"));
        }
    }
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names {
        if DIGESTS.contains(&name.as_str()) {
            headers.remove(&name);
            continue;
        }
        let Some(bytes) = masked(name.as_str().as_bytes()) else { continue };
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        headers.remove(&name);
        // A masked name is a valid header name.
        if let Ok(name) = HeaderName::from_bytes(&bytes) {
            for value in values {
                // This cannot exceed the capacity: as many values were removed before.
                let _ = headers.try_append(&name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Response;
    use zeroize::Zeroizing;

    use super::*;
    use crate::grants::secrets::Secret;

    #[test]
    fn headers_that_bypass_a_grant_are_refused_in_every_spelling() {
        for name in [
            "X-HTTP-Method-Override",
            "x_http_method_override",
            "X-HTTP-Method",
            "x-method-override",
            "X-Original-URL",
            "x-rewrite-url",
            "x-forwarded-for",
            "X_Forwarded-Host",
            "forwarded",
            "x-real-ip",
            "via",
            "te",
            "expect",
            "trailer",
            "upgrade",
            "connection",
            "cookie2",
            "x-middleware-subrequest",
        ] {
            assert!(is_forbidden(&name.parse().unwrap()), "{name}");
        }
        for fine in [
            "accept",
            "content-type",
            "x-api-version",
            "if-none-match",
            "user-agent",
            "traceparent",
            "range",
            "x-request-id",
        ] {
            assert!(!is_forbidden(&fine.parse().unwrap()), "{fine}");
        }
        for parameter in ["_method", "_METHOD", " _method", "_method[]", "X-HTTP-Method-Override", "x.http.method"] {
            assert!(overrides_method(parameter), "{parameter}");
        }
        assert!(!overrides_method("method") && !overrides_method("q"));
        for same in ["api_key", "API-KEY", "api.key", " api key", "api_key[]", "api_key\0x"] {
            assert_eq!(parameter_name(same), "api_key", "{same:?}");
        }
    }

    #[test]
    fn partial_and_encoded_responses_are_refused() {
        let response = |status: u16, headers: &[(&'static str, &'static str)]| {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            check_maskable(&response.body(()).unwrap().into_parts().0).is_ok()
        };
        for (status, headers) in [
            (200, &[][..]),
            (404, &[("content-encoding", "identity")]),
            (200, &[("transfer-encoding", "Chunked"), ("content-type", "application/json; charset=UTF-8")]),
            (200, &[("content-type", "text/html; charset=shift_jis")]),
            (200, &[("content-type", "text/plain; charset=utf-16")]),
            (416, &[("content-range", "bytes */10")]),
        ] {
            assert!(response(status, headers), "{status} {headers:?}");
        }
        for (status, headers) in [
            (206, &[][..]),
            (226, &[]),
            (200, &[("content-encoding", "gzip")]),
            (200, &[("content-encoding", "identity"), ("content-encoding", "br")]),
            (200, &[("content-encoding", "identity, x-rot13")]),
            (200, &[("transfer-encoding", "gzip, chunked")]),
            (200, &[("content-type", "multipart/byteranges; boundary=x")]),
            (200, &[("content-type", "text/plain; charset=\"UTF-7\"")]),
            (200, &[("content-type", "text/plain;; charset=ebcdic-us")]),
        ] {
            assert!(!response(status, headers), "{status} {headers:?}");
        }
    }

    #[test]
    fn names_and_values_are_masked() {
        let secret = Secret::new("s", Zeroizing::new("SecRet-Tok3n".to_owned())).unwrap();
        let redactor = Redactor::new([&Arc::new(secret)]).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("x-secret-tok3n-y", "a"), ("x-secret-tok3n-y", "b"), ("x-v", "SECRET-TOK3N"), ("digest", "d")]
        {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        mask(&redactor, &mut headers);
        assert_eq!(headers.len(), 3);
        assert_eq!(headers.get_all("x-************-y").iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(headers["x-v"], "************");
    }

    #[test]
    fn headers_that_request_a_part_are_removed() {
        let mut headers = HeaderMap::new();
        for name in [
            "range",
            "if-range",
            "te",
            "a-im",
            "accept-charset",
            "accept-encoding",
            "want-digest",
            "request_range",
            "accept",
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        request_whole_response(&mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (&headers["accept"], &headers["accept-encoding"]),
            (&HeaderValue::from_static("x"), &HeaderValue::from_static("identity"))
        );
    }
}
