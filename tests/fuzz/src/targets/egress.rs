//! The authority and the path of a request: `grants::http::{origin, path}`.

use belljar::grants::http::origin::{Origin, OriginPattern, Scheme};
use belljar::grants::http::path::{self, Globs};
use http::uri::Authority;

use crate::{browser, input::Fields};

fn scheme(fields: &mut Fields<'_>) -> Scheme {
    if fields.bytes() == b"https" { Scheme::Https } else { Scheme::Http }
}

/// Browsers and the HTTP library must parse an accepted authority as belljar does. Parsing its normal form must give the same
/// value.
pub(super) fn authority(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let (scheme, authority) = (scheme(&mut fields), fields.text());
    let Ok(origin) = Origin::parse(scheme, &authority) else { return };
    browser::agrees(&origin, &authority).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(Origin::parse(scheme, &origin.authority()).as_ref(), Ok(&origin), "{authority:?}");
    let carried: Authority =
        authority.parse().unwrap_or_else(|why| panic!("the HTTP library refuses {authority:?}: {why}"));
    let host = carried.host().to_ascii_lowercase();
    let same = Origin::parse(scheme, &host).map(|origin| origin.host);
    assert_eq!(same.as_ref(), Ok(&origin.host), "{authority:?}");
    assert_eq!(carried.port_u16().unwrap_or(scheme.default_port()), origin.port, "{authority:?}");
    let shown = origin.host.to_string();
    assert!(
        shown.len() <= 253 && !shown.ends_with('.') && !shown.contains(|c: char| c.is_ascii_uppercase()),
        "{shown}"
    );
}

/// A grant must match if and only if scheme, port and all labels of the host are equal. `*.` stands for exactly one further
/// label in front.
pub(super) fn origin(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let written = fields.text();
    let Ok(pattern) = OriginPattern::parse(&written) else { return };
    let shown = pattern.to_string();
    assert_eq!(OriginPattern::parse(&shown).as_ref(), Ok(&pattern), "{written:?}");
    let (own, rest) = shown.split_once("://").expect("a scheme");
    let labels = |origin: &Origin| -> Vec<String> {
        let host = origin.host.to_string();
        // An IP address counts as one label.
        match origin.host {
            belljar::grants::network::host::Host::Ip(_) => vec![host],
            belljar::grants::network::host::Host::Name(_) => host.split('.').map(str::to_owned).collect(),
        }
    };
    let named = Origin::parse(pattern.scheme(), rest.strip_prefix("*.").unwrap_or(rest))
        .expect("the display form of a pattern can be parsed");
    assert_eq!((own, named.port), (pattern.scheme().as_str(), pattern.port()));
    assert!(!shown.contains("*.") || labels(&named).len() >= 2, "{shown} matches every host of a top-level domain");
    let (scheme, authority) = (scheme(&mut fields), fields.text());
    let Ok(asked) = Origin::parse(scheme, &authority) else { return };
    let (theirs, ours) = (labels(&asked), labels(&named));
    let is_host =
        if shown.contains("*.") { theirs.len() == ours.len() + 1 && theirs[1..] == ours } else { theirs == ours };
    let expected = is_host && own == scheme.as_str() && asked.port == named.port;
    assert_eq!(pattern.matches(&asked), expected, "{shown} and {asked}");
}

/// An accepted path must be in its normal form, which browsers do not change, and have no dot segments. A path that globs allow
/// must match one of them. It must lead into the same directories if a server decodes it several times, or takes `\` for `/`.
pub(super) fn path(bytes: &[u8]) {
    let mut fields = Fields::of(bytes);
    let (globs, asked) = (fields.text(), fields.text());
    let Ok(normal) = path::normalise(&asked) else { return };
    assert_eq!(path::normalise(&normal).as_ref(), Ok(&normal), "{asked:?}");
    browser::keeps(&normal).unwrap_or_else(|why| panic!("{why}"));
    for segment in normal.split('/') {
        let name = cut(&decoded(segment.as_bytes(), 1));
        let before = segment.split(';').next().unwrap_or(segment);
        assert!(before.contains('%') || (name != "." && name != ".."), "{normal:?} has a dot segment");
    }
    let globs: Vec<String> = globs.lines().map(str::to_owned).collect();
    let Ok(globs) = Globs::new(&globs) else { return };
    if globs.is_any() || !globs.allow(&normal) || globs.patterns().any(|glob| glob == normal) {
        return;
    }
    for times in 0..4 {
        let meant = normal.split('/').map(|segment| cut(&decoded(segment.as_bytes(), times)));
        let meant: Vec<_> = meant.filter(|segment| !segment.is_empty()).collect();
        assert_eq!(walked(&decoded(normal.as_bytes(), times)), meant, "{normal:?}, decoded {times} times");
    }
    let is_simple = |glob: &str| !glob.contains("**") && !glob.contains(['{', '}']);
    if globs.patterns().all(is_simple) {
        assert!(globs.patterns().any(|glob| matches(glob.as_bytes(), normal.as_bytes())), "{normal:?} matches no glob");
    }
}

/// The part of a path before parameters, a query or a fragment.
fn cut(segment: &str) -> String {
    segment.split([';', '?', '#']).next().unwrap_or(segment).to_owned()
}

fn decoded(bytes: &[u8], times: usize) -> String {
    let mut bytes = bytes.to_vec();
    for _ in 0..times {
        let (mut once, mut rest) = (Vec::with_capacity(bytes.len()), bytes.as_slice());
        while let [first, tail @ ..] = rest {
            let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
            match (first, digit(0).zip(digit(1))) {
                (b'%', Some((high, low))) => {
                    once.push(u8::try_from(high * 16 + low).expect("two digits"));
                    rest = &tail[2..];
                }
                _ => {
                    once.push(*first);
                    rest = tail;
                }
            }
        }
        bytes = once;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The directories through which a careless server resolves a path.
fn walked(path: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for step in path.split(['/', '\\']).map(cut) {
        match step.as_str() {
            "" | "." => {}
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    steps
}

/// Matches a pattern with `*` and `?`, which do not match `/`.
fn matches(glob: &[u8], path: &[u8]) -> bool {
    let mut ends = vec![true; 1];
    ends.resize(path.len() + 1, false);
    for token in glob {
        let mut next = vec![false; path.len() + 1];
        for at in 0..=path.len() {
            let is_here = |byte: &u8| match token {
                b'?' => *byte != b'/',
                other => byte == other,
            };
            next[at] = match token {
                b'*' => ends[at] || (at > 0 && next[at - 1] && path[at - 1] != b'/'),
                _ => at > 0 && ends[at - 1] && is_here(&path[at - 1]),
            };
        }
        ends = next;
    }
    ends[path.len()]
}
