//! The traits of the functions that components export.

use std::fmt;
use std::time::Duration;

use wasmtime::Store;
use wasmtime::component::Instance;

use crate::grants::secrets::Redactor;
use crate::model::{Body, MountName, ReadError, reference};
use crate::policy::Action;

/// The result of a call. The outer error is a trap or a limit, the inner one the provider's own error.
pub(super) type Returned<R> = wasmtime::Result<Result<R, ReadError>>;

/// What a call knows of its reply in advance.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLimits {
    /// The limit of the mount on the result, in bytes.
    pub result: u64,
    /// The longest spelling of a secret of the mount, in bytes; 0 if it has none.
    pub longest_secret: usize,
}

/// One function of an interface, with its arguments.
pub trait Function: Clone + fmt::Debug + Send + Sync + 'static {
    /// The indices of the interface's functions in a component.
    type Indices: Send + Sync;

    /// The unchecked reply of the guest.
    type Reply: Send;

    /// The checked reply, for the caller.
    type Checked;

    /// The name of the function in the interface.
    const NAME: &'static str;

    /// The action for which policy must allow a call.
    const ACTION: Action;

    /// All arguments that a client can choose, in order. `None` if the call asks for several things at once: then no
    /// single input explains a failure.
    fn input(&self) -> Option<Vec<&str>> {
        Some(Vec::new())
    }

    /// The main argument, for the audit record.
    fn shown(&self) -> Option<&str> {
        None
    }

    /// The reference, if this is a read.
    fn reference(&self) -> Option<&str> {
        None
    }

    /// Prepares the arguments for a call with these limits. Called once, before [`Function::call`].
    fn prepare(&mut self, _: ReplyLimits) {}

    /// Calls the function on `instance`.
    fn call<T: Send + 'static>(
        &self,
        indices: &Self::Indices,
        store: &mut Store<T>,
        instance: &Instance,
    ) -> impl Future<Output = Returned<Self::Reply>> + Send;

    /// The size of a reply in bytes, including a charge for each entry.
    fn bytes(reply: &Self::Reply) -> usize;

    /// The bodies of a reply, in their order.
    fn bodies_mut(_: &mut Self::Reply) -> Vec<&mut Body> {
        Vec::new()
    }

    /// Masks the secrets in a reply, and cleans the texts of errors in it.
    fn redact(reply: &mut Self::Reply, redactor: Option<&Redactor>);

    /// The estimated work of checking a reply, as a number of bytes. The work on a small reply is not measured.
    fn effort(reply: &Self::Reply) -> usize {
        Self::bytes(reply)
    }

    /// Checks a reply, and makes the names in it absolute.
    ///
    /// # Errors
    /// [`ReadError::BadOutput`] with the rule of the interface that the reply breaks.
    fn check(&self, reply: Self::Reply, names: &dyn MountContext) -> Result<Self::Checked, ReadError>;
}

/// Why a reference has no absolute name in its mount. The URIs are sanitised excerpts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AbsoluteNameError {
    /// The absolute URI would be longer than [`reference::MAX_URI`].
    #[error("the URI \"{uri}\" is longer than {} bytes", reference::MAX_URI)]
    TooLong {
        /// The absolute URI.
        uri: String,
    },
    /// The absolute URI is routed to another mount.
    #[error("\"{uri}\" belongs to mount \"{owner}\"")]
    Taken {
        /// The absolute URI.
        uri: String,
        /// The other mount.
        owner: MountName,
    },
    /// The absolute URI is reserved for a mount that is not served now.
    #[error("\"{uri}\" belongs to another mount, which is not served now")]
    Reserved {
        /// The absolute URI.
        uri: String,
    },
}

/// The mount that replied, as the check of a reply needs it.
pub trait MountContext {
    /// The absolute form of a relative reference. The result is routed again, to check that it leads to the same mount.
    ///
    /// # Errors
    /// If it is routed to another mount, or is too long.
    fn absolute(&self, reference: &str) -> Result<String, AbsoluteNameError>;

    /// The base URI of the mount.
    fn base(&self) -> &str;

    /// The longest time for which a reading of the mount may be cached.
    fn max_fresh(&self) -> Duration;
}
