//! Packs a built belljar into installable packages, and the SDKs into packages for authors of providers. It compiles no program
//! and publishes no package; it publishes the providers.
//!
//! Each format is one module. All formats of belljar install the same tree of files; `sdk` has the formats of the SDKs. The bytes of a package depend only on the
//! program, the providers, the files of the repository and the time in `SOURCE_DATE_EPOCH`.

mod archive;
mod compiled;
mod deb;
mod digest;
mod documents;
mod mcpb;
mod npm;
mod oci;
mod output;
mod program;
mod project;
mod publish;
mod registry;
mod sbom;
mod sdk;
mod target;
mod tree;
mod wheel;
mod zip_archive;

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Result, bail};

use crate::output::Output;
use crate::program::Program;
use crate::project::Project;
use crate::tree::Tree;

pub use crate::publish::{PublishRequest, publish};
pub use crate::sdk::{SdkRequest, pack_sdks};
pub use crate::target::{Architecture, TRIPLES, musl_triple};

/// What to pack, and where to write the packages.
#[derive(Clone, Debug)]
pub struct Request {
    /// The root of the repository.
    pub root: PathBuf,
    /// The built programs, at most one for each target. One of them must run on this machine.
    pub programs: Vec<PathBuf>,
    /// The directory with the providers: each `.wasm` file in it is packed.
    pub providers: PathBuf,
    /// The directory of the packages. It is created. Packages of an earlier run in it are removed.
    pub output: PathBuf,
    /// The namespace in the MCP registry, such as `io.github.OWNER`. Without it, `server.json` is not written.
    pub namespace: Option<String>,
    /// The address of the source, such as `https://github.com/OWNER/belljar`. Without it, the packages name none.
    pub repository: Option<String>,
}

/// The written packages.
#[derive(Debug)]
pub struct Packed {
    /// The names of the files in the output directory, sorted. `SHA256SUMS` has all of them but itself.
    pub files: Vec<String>,
    /// The files that were left out, each with the reason and the cure.
    pub left_out: Vec<String>,
}

/// Checks that the directory of the packages holds no other file. It may not exist.
///
/// # Errors
///
/// Names the first file that is no package.
pub fn check_output(directory: &Path) -> Result<()> {
    output::stale(directory).map(drop)
}

/// The programs that lie beside belljar in every package.
pub const COMPANIONS: [&str; 2] = ["belljar-join", "belljar-fetch"];

/// Writes all packages.
///
/// # Errors
///
/// Fails before the first file is written if a program or a provider is missing, if no program runs on this machine, if a
/// program has another version than the repository, or if the output directory holds other files.
pub fn pack(request: &Request) -> Result<Packed> {
    let project = Project::read(&request.root, request.namespace.clone(), request.repository.clone())?;
    let programs = programs(request)?;
    let shared = shared(request, &programs, &project)?;
    let mut left_out = Vec::new();
    let mut trees = Vec::new();
    for program in programs {
        let mut tree = shared.clone();
        tree.program("bin/belljar", program.bytes.clone());
        for name in COMPANIONS {
            tree.program(format!("bin/{name}"), program.beside(name)?);
        }
        if program.is_native() {
            compiled::add(&mut tree, &program)?;
        } else {
            let triple = program.target.triple();
            left_out.push(format!(
                "compiled code of providers for {triple}: only the program itself can compile it; pack it on such a machine"
            ));
        }
        trees.push((program, tree));
    }
    let output = Output::create(&request.output)?;
    if let Err(error) = write(&output, &project, &trees) {
        output.discard();
        return Err(error);
    }
    if project.namespace.is_none() {
        let reason = "the MCP registry needs a namespace; give it with --namespace, such as io.github.OWNER";
        left_out.push(format!("server.json: {reason}"));
    }
    Ok(Packed { files: output.finish()?, left_out })
}

/// Reads the programs. Two programs of one target are an error.
fn programs(request: &Request) -> Result<Vec<Program>> {
    let mut programs: Vec<Program> = Vec::new();
    for path in &request.programs {
        let program = Program::read(path)?;
        if let Some(other) = programs.iter().find(|other| other.target.triple() == program.target.triple()) {
            bail!(
                "\"{}\" and \"{}\" are both for {}: pack one program for each target",
                other.path.display(),
                path.display(),
                program.target.triple()
            );
        }
        programs.push(program);
    }
    Ok(programs)
}

/// The files that are the same for each architecture: providers, manual pages, completions, licence.
fn shared(request: &Request, programs: &[Program], project: &Project) -> Result<Tree> {
    let native = documents::native(programs)?;
    let mut tree = Tree::default();
    tree.providers(&request.providers)?;
    documents::add(&mut tree, native, project)?;
    Ok(tree)
}

/// Writes the packages, and the entry for the MCP registry if its namespace is known. Compression takes most of the time, so each package is made on a thread of its own.
fn write(output: &Output, project: &Project, trees: &[(Program, Tree)]) -> Result<()> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (program, tree) in trees {
            let target = &program.target;
            threads.push(scope.spawn(move || archive::write(output, project, target, tree)));
            threads.push(scope.spawn(move || deb::write(output, project, target, tree)));
            threads.push(scope.spawn(move || wheel::write(output, project, target, tree)));
            threads.push(scope.spawn(move || npm::write_program(output, project, target, tree)));
            threads.push(scope.spawn(move || mcpb::write(output, project, target, tree)));
        }
        threads.push(scope.spawn(move || oci::write(output, project, trees)));
        threads.push(scope.spawn(move || npm::write_launcher(output, project)));
        threads.push(scope.spawn(move || registry::write(output, project)));
        threads
            .push(scope.spawn(move || sbom::write(output, project, trees.iter().map(|(program, _)| &program.target))));
        for thread in threads {
            match thread.join() {
                Ok(written) => written?,
                Err(_) => bail!("a thread that makes a package has panicked: its message is above"),
            }
        }
        Ok(())
    })
}
