//! A revoked version, as the lock remembers it: what its publisher said when it took the version back.

use std::fmt;

use crate::model::{MountName, command, text};

/// The most characters of a reason that are shown.
const SHOWN: usize = 200;

/// Why a version was revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockedRevocation {
    /// The publisher's reason.
    pub reason: Option<String>,
    /// The version that the publisher names in its place.
    pub instead: Option<String>,
}

impl LockedRevocation {
    /// The command that takes another version. Its argument comes from a stranger, so it is only ever a version.
    pub fn cure(&self, mount: &MountName) -> String {
        let instead = self.instead.as_deref().filter(|instead| semver::Version::parse(instead).is_ok());
        let run = match instead {
            Some(instead) => command::line(["upgrade", mount.as_str(), "--to", instead]),
            None => command::line(["upgrade", mount.as_str()]),
        };
        format!("to take another version, run: {run}")
    }
}

impl fmt::Display for LockedRevocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its publisher revoked this version")?;
        if let Some(reason) = &self.reason {
            write!(f, ": \"{}\"", text::excerpt(reason, SHOWN))?;
        }
        if let Some(instead) = &self.instead {
            write!(f, "; it names \"{}\" instead", text::excerpt(instead, SHOWN))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_publisher_adds_no_option_to_the_command() {
        let mount = MountName::new("tides").unwrap();
        let cure = |instead: &str| LockedRevocation { reason: None, instead: Some(instead.to_owned()) }.cure(&mount);
        assert!(cure("1.4.2").ends_with("upgrade tides --to 1.4.2"), "{}", cure("1.4.2"));
        for strange in ["--accept", "1.4.2 --accept", "latest", "$(id)"] {
            assert!(cure(strange).ends_with("upgrade tides"), "{}", cure(strange));
        }
    }
}
