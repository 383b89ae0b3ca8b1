//! Compares belljar's parsing of URIs with that of browsers (the `url` crate). belljar may refuse a URI that they accept, but
//! must not parse it differently.

use belljar::grants::http::origin::Origin;
use belljar::grants::network::host::Host;
use url::Url;

/// Checks that browsers find the same host and port in `authority` as belljar.
///
/// # Errors
/// If they find another host or port. The error has both.
pub fn agrees(origin: &Origin, authority: &str) -> Result<(), String> {
    let url = format!("{}://{authority}/", origin.scheme.as_str());
    let url = match Url::parse(&url) {
        Ok(url) => url,
        // Browsers decode the text after `xn--`, and refuse invalid text. DNS queries use the ASCII form.
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

/// Checks that browsers do not change a path.
///
/// # Errors
/// If they change it. The error has the changed path.
pub fn keeps(path: &str) -> Result<(), String> {
    let url = Url::parse(&format!("https://h{path}")).map_err(|why| format!("{path:?}: browsers refuse it ({why})"))?;
    match (url.path(), url.host_str(), url.query(), url.fragment()) {
        (same, Some("h"), None, None) if same == path => Ok(()),
        _ => Err(format!("{path:?}: browsers read {url}")),
    }
}
