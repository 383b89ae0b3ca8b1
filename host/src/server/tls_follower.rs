//! Follows the files of TLS while belljar serves, so that a renewed certificate is used without a restart.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::{JoinError, spawn_blocking};

use super::file_follower::{FileFollower, FileOutcome, FileReader};
use super::privileged_helper::{HelperError, PrivilegedHelper};
use super::tls_files::{self, TlsFilesError};
use crate::catalog::watch::Watcher;
use crate::config::serve::TlsFiles;
use crate::transport::http::TlsIdentity;

/// The certificate in use, and its followed files.
pub(crate) struct TlsFollower {
    files: TlsFiles,
    identity: Arc<TlsIdentity>,
    follower: FileFollower,
}

/// Reads the files in the helper process: the second wall hides them from this one.
struct CertificateReader {
    files: TlsFiles,
    identity: Arc<TlsIdentity>,
    helper: Arc<PrivilegedHelper>,
    /// The last reported problem. It is not reported again while it lasts.
    problem: Option<String>,
}

/// Why a new certificate is not used.
#[derive(Debug, thiserror::Error)]
enum RenewalError {
    /// The task that reads it was stopped.
    #[error(transparent)]
    Stopped(#[from] JoinError),
    /// The helper failed to read it.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// It cannot be used.
    #[error(transparent)]
    Useless(#[from] TlsFilesError),
}

impl TlsFollower {
    /// Loads the certificate. Called before the second wall is raised.
    ///
    /// # Errors
    /// The files cannot be read, or cannot be used together.
    pub(crate) fn load(files: &TlsFiles) -> Result<Self, TlsFilesError> {
        let follower = FileFollower::new(&[&files.cert, &files.key]);
        let identity = Arc::new(tls_files::identity(files)?);
        Ok(Self { files: files.clone(), identity, follower })
    }

    /// The certificate in use. It changes while [`TlsFollower::run`] runs.
    pub(crate) fn identity(&self) -> Arc<TlsIdentity> {
        Arc::clone(&self.identity)
    }

    /// Applies changes of the files until the task is dropped.
    pub(crate) async fn run(self, helper: Arc<PrivilegedHelper>, watcher: Option<Watcher>) {
        let Self { files, identity, follower } = self;
        follower.run(CertificateReader { files, identity, helper, problem: None }, watcher).await;
    }
}

impl CertificateReader {
    async fn renew(&self) -> Result<bool, RenewalError> {
        let helper = Arc::clone(&self.helper);
        let texts = spawn_blocking(move || helper.read_tls()).await??;
        Ok(tls_files::replace(&self.identity, &self.files, texts)?)
    }
}

impl FileReader for CertificateReader {
    fn read(&mut self) -> BoxFuture<'_, FileOutcome> {
        async {
            match self.renew().await {
                Ok(is_new) => {
                    if is_new {
                        tracing::info!("the certificate of TLS was read again");
                    }
                    self.problem = None;
                    FileOutcome::Read
                }
                Err(why) => {
                    let text = why.to_string();
                    if self.problem.replace(text.clone()).as_ref() != Some(&text) {
                        tracing::error!("the new certificate is refused, the old one stays in use: {text}");
                    }
                    match why {
                        RenewalError::Useless(_) => FileOutcome::Read,
                        RenewalError::Helper(_) | RenewalError::Stopped(_) => FileOutcome::Unread,
                    }
                }
            }
        }
        .boxed()
    }
}
