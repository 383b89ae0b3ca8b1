//! Starts the host for a command that reads, lists or calls.

use std::path::Path;
use std::process::ExitCode;

use super::progress;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::startup::StartedHost;
use crate::server::{
    configuration, keys::Keys, keys::SharedCode, landlock, pins::Pinning, privileged_helper, record, startup,
};

/// Where a command finds the host, and what it writes.
pub(super) struct HostArgs<'a> {
    pub(super) at: &'a LocationArgs,
    pub(super) dev: bool,
    /// The file that the command writes.
    pub(super) output: Option<&'a Path>,
    /// True if the command can make calls for which a person is asked.
    pub(super) asks: bool,
}

/// Starts the host, waits until every component is loaded, and runs `work`.
pub(super) fn with_host(
    HostArgs { at, dev, output, asks }: HostArgs<'_>,
    work: impl AsyncFnOnce(&StartedHost) -> Result<ExitCode, Failure>,
) -> Result<ExitCode, Failure> {
    progress::start(if asks { "warn,rmcp=error" } else { "error" });
    let config = configuration::config(at, &[], Pinning::unless_dev(dev, Pinning::WriteMissing))?;
    let consents = if asks { privileged_helper::start_for_consents(at, &config)? } else { None };
    let keys = Keys::read(at, &config, SharedCode::Use)?;
    let wall = landlock::raise(&config, &keys, output)?;
    wall.runtime()?.block_on(async {
        let audit = record::audit(&config, true)?;
        let host = startup::start(config, keys, audit, consents)?;
        host.gateway.fully_loaded_snapshot().await;
        progress::end();
        work(&host).await
    })
}
