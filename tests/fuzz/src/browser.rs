//! What browsers make of a URI, by the `url` crate: belljar may refuse what they take, and never read it otherwise.

use belljar::grants::http::origin::{Host, Origin};
use url::Url;

/// Whether browsers find the same host and port in `authority` as belljar did.
///
/// # Errors
/// Says what they find instead.
pub fn agrees(origin: &Origin, authority: &str) -> Result<(), String> {
    let url = format!("{}://{authority}/", origin.scheme.as_str());
    let url = match Url::parse(&url) {
        Ok(url) => url,
        // They decode what follows `xn--`, and refuse what does not decode; a name server is asked for the letters.
        Err(_) if origin.host.to_string().split('.').any(|label| label.starts_with("xn--")) => return Ok(()),
        Err(why) => return Err(format!("{authority:?}: browsers refuse it ({why}), belljar reads {origin}")),
    };
    let is_same_host = match (url.host(), &origin.host) {
        (Some(url::Host::Domain(theirs)), Host::Name(ours)) => theirs.strip_suffix('.').unwrap_or(theirs) == ours,
        (Some(url::Host::Ipv4(theirs)), Host::Ip(ours)) => *ours == theirs,
        (Some(url::Host::Ipv6(theirs)), Host::Ip(ours)) => *ours == theirs,
        _ => false,
    };
    let is_same = is_same_host
        && url.port_or_known_default() == Some(origin.port)
        && url.scheme() == origin.scheme.as_str()
        && (url.username(), url.password(), url.path()) == ("", None, "/");
    if is_same { Ok(()) } else { Err(format!("{authority:?}: browsers read {url}, belljar reads {origin}")) }
}

/// Whether browsers leave a path as it is.
///
/// # Errors
/// Says what they make of it.
pub fn keeps(path: &str) -> Result<(), String> {
    let url = Url::parse(&format!("https://h{path}")).map_err(|why| format!("{path:?}: browsers refuse it ({why})"))?;
    match (url.path(), url.host_str(), url.query(), url.fragment()) {
        (same, Some("h"), None, None) if same == path => Ok(()),
        _ => Err(format!("{path:?}: browsers read {url}")),
    }
}
