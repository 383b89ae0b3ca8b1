//! The reason why a mount is not built as planned.

use super::source::ComponentSourceError;
use crate::catalog::unserved::UnservedReason;
use crate::model::Digest;

/// The reason why a mount is not built as planned, and the cure. Its text is for the operator: it may name paths of the
/// host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BuildError {
    /// Its file cannot be used.
    #[error("{0}")]
    Source(ComponentSourceError),
    /// The sandbox rejects its component. Gives the reason.
    #[error("{0}")]
    Component(String),
    /// Loading the component panicked.
    #[error("belljar panicked while loading it")]
    Panicked,
    /// A granted file or directory cannot be opened. Names the grant.
    #[error("{0}")]
    Grant(String),
    /// The grant came after Landlock was enforced, so this process cannot open its file, directory or port. Names the grant.
    #[error("its grant of {0} needs a restart: landlock was enforced without it; restart belljar")]
    Landlock(String),
}

impl BuildError {
    /// The kind of reason that clients receive.
    pub(super) fn cause(&self) -> UnservedReason {
        match self {
            Self::Source(_) | Self::Component(_) | Self::Panicked => UnservedReason::Component,
            Self::Grant(_) | Self::Landlock(_) => UnservedReason::Grant,
        }
    }

    /// True if a restart of belljar is the cure.
    pub(super) fn needs_restart(&self) -> bool {
        matches!(self, Self::Landlock(_))
    }
}

/// The mount that is served in place of one that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fallback {
    /// None.
    Nothing,
    /// The mount as it was before.
    Unchanged,
    /// The planned mount with its earlier component.
    EarlierBytes(Digest),
}

impl Fallback {
    /// The text about `error` for the operator.
    pub(super) fn explain(self, error: &BuildError) -> String {
        match self {
            Self::Nothing => error.to_string(),
            Self::Unchanged => format!("{error}; meanwhile the mount stays as it was"),
            Self::EarlierBytes(digest) => {
                format!("{error}; meanwhile the earlier bytes ({digest}) are served")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_gives_the_reason_and_the_mount_that_is_served_instead() {
        let wall = BuildError::Landlock("TCP port 443".to_owned());
        assert_eq!((wall.cause(), wall.needs_restart()), (UnservedReason::Grant, true));
        assert_eq!(
            Fallback::Unchanged.explain(&wall),
            "its grant of TCP port 443 needs a restart: landlock was enforced without it; restart belljar; meanwhile the mount stays as it was"
        );
        let source = BuildError::Source(ComponentSourceError::BeingWritten);
        assert_eq!((source.cause(), source.needs_restart()), (UnservedReason::Component, false));
        assert_eq!(Fallback::Nothing.explain(&source), "it is being written");
        let digest = Digest([0; 32]);
        let text = Fallback::EarlierBytes(digest).explain(&BuildError::Panicked);
        assert_eq!(
            text,
            format!("belljar panicked while loading it; meanwhile the earlier bytes ({digest}) are served")
        );
    }
}
