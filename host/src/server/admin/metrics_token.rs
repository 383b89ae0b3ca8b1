//! The token that a request for metrics brings from another machine.

use std::path::{Path, PathBuf};

use http::{HeaderMap, header};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use crate::server::files::{self, FileError};

/// The fewest characters of a token.
const SHORTEST: usize = 32;

/// See the module.
pub(super) struct MetricsToken(Zeroizing<String>);

/// Why the token cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("admin.metrics-token: \"{}\": {problem}", path.display())]
pub(crate) struct MetricsTokenError {
    /// The file.
    path: PathBuf,
    /// The reason.
    problem: MetricsTokenProblem,
}

/// The problem of the file of the token.
#[derive(Debug, thiserror::Error)]
enum MetricsTokenProblem {
    /// The file cannot be read, or other users can change it.
    #[error(transparent)]
    Unreadable(#[from] FileError),
    /// Every user of the machine knows the token.
    #[error("every user of this machine can read it; run: chmod o= FILE")]
    Open,
    /// It does not exist.
    #[error("it does not exist; to make one, run: openssl rand -hex 32 > FILE")]
    Absent,
    /// Its text cannot be in a header, or is easy to guess.
    #[error(
        "expected one line of at least {SHORTEST} letters and digits; to make a token, run: openssl rand -hex 32 > FILE"
    )]
    NotAToken,
}

impl MetricsToken {
    /// Reads the token from its file.
    ///
    /// # Errors
    /// If the file cannot be read, everybody can read it, or it has no token.
    pub(super) fn read(path: &Path) -> Result<Self, MetricsTokenError> {
        let fail = |problem| MetricsTokenError { path: path.to_owned(), problem };
        let text = files::read_protected(path).map_err(|error| fail(error.into()))?;
        let text = Zeroizing::new(text.ok_or_else(|| fail(MetricsTokenProblem::Absent))?);
        if files::is_readable_by_all(path) {
            return Err(fail(MetricsTokenProblem::Open));
        }
        let token = text.trim_end_matches(['\r', '\n']);
        // The characters of a bearer token (RFC 6750, section 2.1).
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
        match token.len() >= SHORTEST && token.bytes().all(fits) {
            true => Ok(Self(Zeroizing::new(token.to_owned()))),
            false => Err(fail(MetricsTokenProblem::NotAToken)),
        }
    }

    /// True if the request brings the token.
    pub(super) fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(Ok(value)), None) = (all.next().map(http::HeaderValue::to_str), all.next()) else { return false };
        let Some((scheme, token)) = value.split_once(' ') else { return false };
        // The scheme is matched without case (RFC 9110, section 11.1).
        scheme.eq_ignore_ascii_case("bearer") && bool::from(token.as_bytes().ct_eq(self.0.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let token = MetricsToken(Zeroizing::new("a".repeat(32)));
        let is_in = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            token.is_in(&headers)
        };
        let right = format!("Bearer {}", "a".repeat(32));
        assert!(is_in(&[&right]) && is_in(&[&right.replace("Bearer", "bearer")]));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            &right[..right.len() - 1],
            &format!("{right}a"),
            &right.replace("Bearer", "Basic"),
        ] {
            assert!(!is_in(&[wrong]), "{wrong}");
        }
        assert!(!is_in(&[]) && !is_in(&[&right, &right]));
    }
}
