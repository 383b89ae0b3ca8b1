//! Sources: what an operator types to name a component.

use belljar_fetch_protocol::{Failure, FailureKind};

use crate::digest::Sha256;
use crate::failure::{Outcome, failure};
use crate::text;
use crate::url::{Origin, Url};

/// The tag of a source without a tag and without a digest.
const DEFAULT_TAG: &str = "latest";

/// The host that speaks for Docker Hub, whose own name serves pages for people.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A repository of a registry.
    Image(Image),
    /// A file behind a URL.
    File(File),
}

/// An artifact in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The registry, as it is typed.
    pub(crate) registry: String,
    /// The server that answers for the registry.
    pub(crate) origin: Origin,
    /// The repository, without the registry.
    pub(crate) repository: String,
    /// The tag. `None` if only a digest is named.
    pub(crate) tag: Option<String>,
    /// The digest of the manifest.
    pub(crate) digest: Option<Sha256>,
}

/// A file with a known digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// The URL, without the digest.
    pub(crate) url: Url,
    /// The digest of the file.
    pub(crate) digest: Sha256,
}

impl Source {
    /// Parses what the operator typed.
    pub(crate) fn parse(typed: &str) -> Outcome<Self> {
        let lower = typed.to_ascii_lowercase();
        if lower.starts_with("https://") || lower.starts_with("http://") {
            return File::parse(typed).map(Self::File);
        }
        Image::parse(typed).map(Self::Image)
    }

    /// The server that the operator named.
    pub(crate) fn origin(&self) -> &Origin {
        match self {
            Self::Image(image) => &image.origin,
            Self::File(file) => &file.url.origin,
        }
    }

    /// What the scopes of rules are compared with.
    pub(crate) fn scope(&self) -> String {
        match self {
            Self::Image(image) => image.name(),
            Self::File(file) => {
                let path = file.url.path.split('?').next().unwrap_or_default();
                format!("{}{path}", file.url.origin.authority())
            }
        }
    }
}

impl File {
    fn parse(typed: &str) -> Outcome<Self> {
        let Some((url, digest)) = typed.split_once('#') else {
            return Err(malformed(
                typed,
                "a file needs its digest",
                "write https://HOST/FILE.wasm#sha256=HEX, with the digest that its publisher names",
            ));
        };
        let digest = digest.strip_prefix("sha256=").and_then(|hex| Sha256::from_hex(hex).ok());
        let Some(digest) = digest else {
            return Err(malformed(
                typed,
                "expected \"#sha256=\" and 64 small hexadecimal digits",
                "write https://HOST/FILE.wasm#sha256=HEX",
            ));
        };
        let Some(url) = Url::parse(url) else {
            return Err(malformed(
                typed,
                "it is not a plain URL",
                "write https://HOST/FILE.wasm#sha256=HEX, without a user name",
            ));
        };
        if !url.origin.secure && !url.origin.is_loopback() {
            return Err(malformed(typed, "files are fetched by HTTPS", "write https:// instead of http://"));
        }
        Ok(Self { url, digest })
    }

    /// The URL with the digest.
    pub(crate) fn pinned(&self) -> String {
        format!("{}#sha256={}", self.url, self.digest.hex())
    }
}

impl Image {
    /// Parses a repository with a tag, a digest, both, or none.
    pub(crate) fn parse(typed: &str) -> Outcome<Self> {
        let rest = typed.strip_prefix("oci://").unwrap_or(typed);
        let (rest, digest) = match rest.split_once('@') {
            None => (rest, None),
            Some((rest, digest)) => match digest.parse() {
                Ok(digest) => (rest, Some(digest)),
                Err(_) => {
                    return Err(malformed(
                        typed,
                        "expected \"@sha256:\" and 64 small hexadecimal digits",
                        "copy the digest of the manifest, or write a tag: REGISTRY/REPOSITORY:TAG",
                    ));
                }
            },
        };
        let Some((registry, path)) = rest.split_once('/') else {
            return Err(malformed(
                typed,
                "it names no registry",
                "write REGISTRY/REPOSITORY:TAG, such as ghcr.io/acme/tides:1.2",
            ));
        };
        let registry = registry.to_ascii_lowercase();
        if !registry.contains(['.', ':']) && registry != "localhost" {
            let cure = "write the registry in front, such as ghcr.io/acme/tides:1.2 or docker.io/acme/tides:1.2";
            return Err(malformed(typed, "it names no registry", cure));
        }
        let api = if registry == DOCKER_HUB.0 { DOCKER_HUB.1 } else { registry.as_str() };
        let loopback = Origin::parse(false, api).filter(Origin::is_loopback);
        let Some(origin) = loopback.or_else(|| Origin::parse(true, api)) else {
            return Err(malformed(
                typed,
                "its registry is not a host",
                "write HOST or HOST:PORT before the first \"/\"",
            ));
        };
        let (repository, tag) = match path.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(malformed(typed, "its tag has letters that no tag has", "write REGISTRY/REPOSITORY:TAG"));
        }
        let is_official = registry == DOCKER_HUB.0 && !repository.contains('/');
        let repository = if is_official { format!("library/{repository}") } else { repository.to_owned() };
        if !is_repository(&repository) {
            return Err(malformed(
                typed,
                "its repository has letters that no repository has",
                "write it in small letters: REGISTRY/REPOSITORY:TAG",
            ));
        }
        let tag = tag.map(str::to_owned).or_else(|| digest.is_none().then(|| DEFAULT_TAG.to_owned()));
        Ok(Self { registry, origin, repository, tag, digest })
    }

    /// Parses the target of an upload: a repository with a tag.
    pub(crate) fn tagged(typed: &str) -> Outcome<Self> {
        let image = Self::parse(typed)?;
        let cure = "write REGISTRY/REPOSITORY:TAG, such as ghcr.io/acme/tides:1.2.0";
        let says_tag = typed.rsplit('/').next().is_some_and(|last| last.contains(':'));
        match &image.tag {
            Some(tag) if tag.starts_with("sha256-") => {
                Err(malformed(typed, "tags that begin with \"sha256-\" belong to signatures", cure))
            }
            Some(_) if image.digest.is_none() && says_tag => Ok(image),
            _ => Err(malformed(typed, "an upload needs a tag, and no digest", cure)),
        }
    }

    /// The registry and the repository.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The source in its full spelling.
    pub(crate) fn reference(&self) -> String {
        let mut out = self.name();
        if let Some(tag) = &self.tag {
            out.push(':');
            out.push_str(tag);
        }
        if let Some(digest) = &self.digest {
            out.push('@');
            out.push_str(&digest.to_string());
        }
        out
    }

    /// The source with this digest instead of a tag.
    pub(crate) fn pinned(&self, digest: &Sha256) -> String {
        format!("{}@{digest}", self.name())
    }
}

fn malformed(typed: &str, problem: &str, cure: &str) -> Box<Failure> {
    failure(FailureKind::Request, format!("\"{}\" is not a source: {problem}", text::clean(typed, text::NAME)), cure)
}

/// True if this is a repository of the distribution specification: parts with single separators between letters and digits.
fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        let separators = ["__", ".", "_", "-"];
        let mut rest = part;
        loop {
            let end = rest.find(|letter: char| !letter.is_ascii_lowercase() && !letter.is_ascii_digit());
            let Some(end) = end else { return !rest.is_empty() };
            let (Some(word), Some(after)) = (rest.get(..end), rest.get(end..)) else { return false };
            let dashes = after.trim_start_matches('-');
            let after = if dashes.len() < after.len() {
                Some(dashes)
            } else {
                separators.iter().find_map(|separator| after.strip_prefix(separator))
            };
            let (false, Some(after)) = (word.is_empty(), after) else { return false };
            rest = after;
        }
    };
    name.len() <= 255 && name.split('/').all(is_part)
}

/// True if this is a tag of the distribution specification.
pub(crate) fn is_tag(tag: &str) -> bool {
    let mut bytes = tag.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    first && tag.len() <= 128 && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

#[cfg(test)]
mod tests;
