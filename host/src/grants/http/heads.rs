//! Headers of requests and answers: what a provider may not say, and what an answer must be so that secrets are seen in it.
//!
//! A grant is judged by method and path. Whatever tells an upstream to read another method, path, host or caller than those
//! that were judged would go round it, and is refused. Where the host adds a secret, an answer must come whole and readable:
//! a part of an echo, or one in another coding, would carry it past the redactor.

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HeaderName, HeaderValue, TRANSFER_ENCODING,
};
use http::{HeaderMap, StatusCode, response};
use mediatype::MediaType;
use wasmtime_wasi_http::Error;

use crate::grants::secrets::Redactor;
use crate::model::Guard;

/// Headers that carry credentials: a provider sets them only where a grant says so.
pub(super) const CREDENTIALS: [HeaderName; 2] = [AUTHORIZATION, COOKIE];

/// Other names under which servers take credentials: a provider sets none of them.
const ALSO_CREDENTIALS: &[&str] =
    &["cookie2", "proxy-authorization", "x-authorization", "remote-user", "x-remote-user"];

/// Headers by which servers take another method, path or host than the request's, or another caller than the connection's.
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

/// The same, with whatever follows.
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

/// Headers about the connection and the framing, which are the host's.
const HOP: &[&str] = &["expect", "te", "trailer", "trailers", "upgrade", "connection", "keep-alive", "http2-settings"];

/// Headers that ask for a part of an answer, or for one in another coding.
const PARTIAL: &[&str] = &[
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

/// Headers that tell something of a body as it was before it was masked.
const DIGESTS: &[&str] = &["content-digest", "content-md5", "digest", "repr-digest", "x-content-digest"];

/// Parts of the names of parameters by which servers take another method than the request's.
const OVERRIDE_PARAMETERS: &[&str] = &[
    "_method",
    "_http_method",
    "_httpmethod",
    "x_http_method",
    "x_http_method_override",
    "x_method_override",
    "http_method_override",
];

/// The name as servers read it that know no difference between `-` and `_` (CGI, WSGI, PHP).
fn folded(name: &str) -> String {
    name.replace('_', "-").to_ascii_lowercase()
}

/// Whether two names are one to servers that know no difference between `-` and `_`.
pub(super) fn is_same(one: &HeaderName, other: &HeaderName) -> bool {
    one == other || folded(one.as_str()) == folded(other.as_str())
}

/// Whether no provider may set this header, whatever is granted.
pub(super) fn is_refused(name: &HeaderName) -> bool {
    let name = folded(name.as_str());
    let is_in = |all: &[&str]| all.contains(&name.as_str());
    let overrides = is_in(OVERRIDES) || OVERRIDE_FAMILIES.iter().any(|family| name.starts_with(family));
    ((overrides || is_in(HOP)) && Guard::Override.is_on()) || (is_in(ALSO_CREDENTIALS) && Guard::Credential.is_on())
}

/// Whether a parameter of this decoded name has servers take another method than the request's.
pub(super) fn is_override(parameter: &str) -> bool {
    OVERRIDE_PARAMETERS.contains(&parameter_name(parameter).as_str()) && Guard::Override.is_on()
}

/// The name of a parameter as the most liberal of servers read it: without case, spaces before it or what follows `[` or a
/// NUL, with `.`, `-` and spaces as `_`.
pub(super) fn parameter_name(name: &str) -> String {
    let name = name.trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
    let name = name.split(['[', '\0']).next().unwrap_or(name);
    name.trim_end().chars().map(|c| if matches!(c, '.' | '-' | ' ') { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Takes away what asks for a part of the answer, or for one that cannot be read.
pub(super) fn ask_for_whole(headers: &mut HeaderMap) {
    if !Guard::Whole.is_on() {
        return;
    }
    let names: Vec<HeaderName> = headers.keys().cloned().collect();
    for name in names.iter().filter(|name| PARTIAL.contains(&folded(name.as_str()).as_str())) {
        headers.remove(name);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
}

/// Whether secrets can be seen in an answer: it is whole, and in no coding of its own.
///
/// # Errors
/// What the provider gets instead of it.
pub(super) fn is_whole(answer: &response::Parts) -> Result<(), Error> {
    if !Guard::Whole.is_on() {
        return Ok(());
    }
    let partial = [StatusCode::PARTIAL_CONTENT, StatusCode::IM_USED];
    if partial.contains(&answer.status) {
        return Err(Error::HttpResponseContentCoding(Some("partial".to_owned())));
    }
    if has_other(&answer.headers, &CONTENT_ENCODING, "identity") {
        return Err(Error::HttpResponseContentCoding(None));
    }
    if has_other(&answer.headers, &TRANSFER_ENCODING, "chunked") {
        return Err(Error::HttpResponseTransferCoding(None));
    }
    if answer.headers.get_all(CONTENT_TYPE).iter().any(|value| !is_readable(value)) {
        return Err(Error::HttpResponseContentCoding(Some("charset".to_owned())));
    }
    Ok(())
}

/// Whether a list of codings has another than this one.
fn has_other(headers: &HeaderMap, name: &HeaderName, plain: &str) -> bool {
    let is_plain =
        |coding: &[u8]| coding.trim_ascii().is_empty() || coding.trim_ascii().eq_ignore_ascii_case(plain.as_bytes());
    headers.get_all(name).iter().any(|value| !value.as_bytes().split(|b| *b == b',').all(is_plain))
}

/// Character sets in which letters of ASCII are something else, by how their names begin.
const OTHER_CHARSETS: &[&str] =
    &["utf-7", "utf7", "unicode-1-1-utf-7", "scsu", "bocu", "ebcdic", "ibm", "cp", "hz", "iso-2022"];

/// Those of IBM and Microsoft among them that have the letters of ASCII in their places.
const SAME_CHARSETS: &[&str] =
    &["ibm437", "cp437", "ibm850", "cp850", "ibm866", "cp866", "cp125", "cp932", "cp936", "cp949", "cp950"];

/// Whether letters of ASCII are themselves in content of this type, and it is no list of parts.
fn is_readable(value: &HeaderValue) -> bool {
    let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    if text.trim_start().starts_with("multipart/byteranges") {
        return false;
    }
    // Where the syntax is broken, clients look for the word all the same.
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
        SAME_CHARSETS.iter().any(|same| charset.starts_with(same))
            || !OTHER_CHARSETS.iter().any(|other| charset.starts_with(other))
    })
}

/// Masks secrets in headers, and takes away what tells of a body before it was masked.
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
        if Guard::Whole.is_on() && DIGESTS.contains(&name.as_str()) {
            headers.remove(&name);
            continue;
        }
        let Some(bytes) = masked(name.as_str().as_bytes()) else { continue };
        let values: Vec<HeaderValue> = headers.get_all(&name).iter().cloned().collect();
        headers.remove(&name);
        // A mask is a name that a header can have.
        if let Ok(name) = HeaderName::from_bytes(&bytes) {
            for value in values {
                // As many as there were before.
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
    fn whatever_goes_round_a_grant_is_refused_in_every_spelling() {
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
            assert!(is_refused(&name.parse().unwrap()), "{name}");
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
            assert!(!is_refused(&fine.parse().unwrap()), "{fine}");
        }
        for parameter in ["_method", "_METHOD", " _method", "_method[]", "X-HTTP-Method-Override", "x.http.method"] {
            assert!(is_override(parameter), "{parameter}");
        }
        assert!(!is_override("method") && !is_override("q"));
        for same in ["api_key", "API-KEY", "api.key", " api key", "api_key[]", "api_key\0x"] {
            assert_eq!(parameter_name(same), "api_key", "{same:?}");
        }
    }

    #[test]
    fn an_answer_is_whole_and_readable_or_none() {
        let answer = |status: u16, headers: &[(&'static str, &'static str)]| {
            let mut answer = Response::builder().status(status);
            for (name, value) in headers {
                answer = answer.header(*name, *value);
            }
            is_whole(&answer.body(()).unwrap().into_parts().0).is_ok()
        };
        for (status, headers) in [
            (200, &[][..]),
            (404, &[("content-encoding", "identity")]),
            (200, &[("transfer-encoding", "Chunked"), ("content-type", "application/json; charset=UTF-8")]),
            (200, &[("content-type", "text/html; charset=shift_jis")]),
            (200, &[("content-type", "text/plain; charset=utf-16")]),
            (416, &[("content-range", "bytes */10")]),
        ] {
            assert!(answer(status, headers), "{status} {headers:?}");
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
            assert!(!answer(status, headers), "{status} {headers:?}");
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
    fn what_asks_for_a_part_is_taken_away() {
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
        ask_for_whole(&mut headers);
        assert_eq!(headers.len(), 2);
        assert_eq!(
            (&headers["accept"], &headers["accept-encoding"]),
            (&HeaderValue::from_static("x"), &HeaderValue::from_static("identity"))
        );
    }
}
