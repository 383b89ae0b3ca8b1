//! Packs the SDKs, for authors of providers. Each package contains all that a build needs beside the tools of its language: the
//! SDK, the interface in WIT, the licence.
//!
//! Where a language has a tool that makes packages of sources, that tool makes them: `cargo package`, `npm pack`. This module
//! publishes no package.

mod archive;
mod go;
mod node;
mod python;
mod rust;
mod sources;

use std::path::PathBuf;

use anyhow::Result;

use crate::Packed;
use crate::output::Output;
use crate::project::Project;

/// Which SDKs to pack, and where to write the packages.
#[derive(Clone, Debug)]
pub struct SdkRequest {
    /// The root of the repository.
    pub root: PathBuf,
    /// The directory of the packages. It is created. Packages of an earlier run in it are removed.
    pub output: PathBuf,
    /// The address of the source, such as `https://github.com/OWNER/belljar`. Without it, the packages name none.
    pub repository: Option<String>,
}

/// Writes the packages of all SDKs. Needs cargo and npm on the `PATH`.
///
/// # Errors
///
/// Fails if a source is missing or has another version than the repository, if cargo or npm fails, or if the output directory
/// holds other files. No package is left then.
pub fn pack_sdks(request: &SdkRequest) -> Result<Packed> {
    let project = Project::read(&request.root, None, request.repository.clone())?;
    let output = Output::create(&request.output)?;
    if let Err(error) = write(&output, &project) {
        output.discard();
        return Err(error);
    }
    Ok(Packed { files: output.finish()?, left_out: Vec::new() })
}

fn write(output: &Output, project: &Project) -> Result<()> {
    rust::write(output, project)?;
    node::write(output, project)?;
    python::write(output, project)?;
    go::write(output, project)?;
    ["c", "cpp", "zig"].into_iter().try_for_each(|language| archive::write(output, project, language))
}
