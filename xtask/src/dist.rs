//! Compiles belljar for each target, and packs it. The crate `belljar-dist` owns the formats of the packages.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use belljar_dist::{COMPANIONS, Packed, PublishRequest, Request, TRIPLES, musl_triple};

use crate::output;
use crate::profile;
use crate::setup;
use crate::shell::{self, Shell};
use crate::trial;

const USAGE: &str = "cargo xtask dist [--target TRIPLE]... [--program FILE] [--providers DIR] [--output DIR] \
    [--namespace NAME] [--repository URL] [--publish REGISTRY/NAMESPACE [--sign-key FILE]]";

/// The cargo command that compiles C and links with Zig: one compiler for all targets, with musl of each in it.
const ZIGBUILD: &str = "cargo-zigbuild@0.24.1";

/// The option of cargo that leaves out the symbols. They are a fifth of the file, and only debuggers read them.
const STRIP: &str = "profile.dist.strip=\"symbols\"";

/// The flag of rustc that links the program so that the kernel loads it at a random address. Zig's linker ignores rustc's own
/// request for a static program of this kind.
const RANDOM_ADDRESSES: &str = "-Clink-arg=-pie";

/// The flags of the C compiler that keep the time of the build out of the program. mimalloc would contain it, and Zig refuses
/// that.
const NO_DATES: [&str; 3] = ["-Wno-builtin-macro-redefined", "-D__DATE__=\"-\"", "-D__TIME__=\"-\""];

/// The options.
#[derive(Debug, Default, PartialEq)]
struct Options {
    /// The targets to compile for. Empty: all of [`TRIPLES`].
    targets: Vec<&'static str>,
    /// A built program to pack instead.
    program: Option<PathBuf>,
    providers: Option<PathBuf>,
    output: Option<PathBuf>,
    namespace: Option<String>,
    repository: Option<String>,
    /// Publish the providers there, and pack nothing.
    publish: Option<String>,
    sign_key: Option<PathBuf>,
}

/// Compiles belljar, unless the options name a program, and writes the packages.
pub(crate) fn run(shell: &Shell, arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = parse(arguments)?;
    let providers = options.providers.unwrap_or_else(|| shell.target.join("plugins"));
    if let Some(namespace) = options.publish {
        let program = options.program.unwrap_or_else(|| shell.target.join("release/belljar"));
        let (root, key, repository) = (shell.root.clone(), options.sign_key, options.repository);
        let request = PublishRequest { root, program, providers, namespace, key, repository };
        belljar_dist::publish(&request)?.iter().for_each(|reference| output::line(&format!("published {reference}")));
        return Ok(());
    }
    let output = options.output.unwrap_or_else(|| shell.target.join("packages"));
    // Compiling takes many minutes; without these, packing would fail after that.
    belljar_dist::check_output(&output)?;
    if !providers.is_dir() {
        bail!(
            "there is no directory \"{}\" with providers: build them with `cargo xtask build`, or name another with --providers",
            providers.display()
        );
    }
    let programs = match options.program {
        Some(program) => vec![program],
        None => compile(shell, &options.targets, &providers)?,
    };
    let request = Request {
        root: shell.root.clone(),
        programs,
        providers,
        output: output.clone(),
        namespace: options.namespace,
        repository: options.repository,
    };
    report(&output, &belljar_dist::pack(&request)?);
    Ok(())
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value: {USAGE}"));
        match argument.as_str() {
            "--target" => options.targets.push(musl_triple(&value()?)?),
            "--program" => options.program = Some(value()?.into()),
            "--providers" => options.providers = Some(value()?.into()),
            "--output" => options.output = Some(value()?.into()),
            "--namespace" => options.namespace = Some(value()?),
            "--repository" => options.repository = Some(value()?),
            "--publish" => options.publish = Some(value()?),
            "--sign-key" => options.sign_key = Some(std::path::absolute(value()?)?),
            other => bail!("no argument \"{other}\": {USAGE}"),
        }
    }
    if options.program.is_some() && !options.targets.is_empty() {
        bail!("--program names a program that is built already, so --target has no use: leave out one of them");
    }
    if options.publish.is_none() && options.sign_key.is_some() {
        bail!("--sign-key signs what is published: name a registry with --publish");
    }
    if options.publish.is_some() && !options.targets.is_empty() {
        bail!("--publish packs nothing, so --target has no use: leave out one of them");
    }
    Ok(options)
}

/// Prints the path and the size of each package, and what was left out.
pub(crate) fn report(output: &Path, packed: &Packed) {
    for name in &packed.files {
        let path = output.join(name);
        let size = fs::metadata(&path).map_or(0, |file| file.len());
        let (unit, name) = if size < 1 << 20 { (1 << 10, "KiB") } else { (1 << 20, "MiB") };
        output::line(&format!("{:>8.1} {name}  {}", size as f64 / f64::from(unit), path.display()));
    }
    for reason in &packed.left_out {
        output::line(&format!("left out: {reason}"));
    }
}

/// Compiles belljar for the targets, and reads with each. Returns the paths of the programs.
fn compile(shell: &Shell, targets: &[&'static str], providers: &Path) -> Result<Vec<PathBuf>> {
    let targets = if targets.is_empty() { TRIPLES.as_slice() } else { targets };
    let zig = tools(shell)?;
    let directory = shell.target.join("dist-build");
    for target in targets {
        setup::target(shell, target)?;
        let build = |directory: &Path, flags: &[String], more: &[&str]| {
            let mut cargo = shell.cargo(["zigbuild", "--locked", "--profile", "dist", "--package", "belljar"]);
            cargo.args(more).args(["--target", target, "--target-dir"]).arg(directory);
            cargo.env("CARGO_ZIGBUILD_ZIG_PATH", &zig).env("PATH", search_path(shell)?);
            set_flags(shell, directory, flags, &mut cargo)?;
            shell::run(&mut cargo)
        };
        let flags = if target.starts_with(env::consts::ARCH) {
            output::line(&format!("compiling belljar for {target}, with counters"));
            let counting = directory.join("counting");
            let flag = profile::make(shell, &counting.join("profile"), providers, |flags| {
                build(&counting, flags, &profile::COUNTING).map(|()| program(&counting, target))
            })?;
            vec![flag]
        } else {
            output::line(&format!("NOT PROFILED: the program for {target}; that needs a machine that runs it"));
            Vec::new()
        };
        output::line(&format!("compiling belljar for {target}"));
        let companions: Vec<_> =
            COMPANIONS.iter().flat_map(|name| ["--package", name]).chain(["--config", STRIP]).collect();
        build(&directory, &flags, &companions)?;
        trial::read(shell, target, &program(&directory, target), providers)?;
    }
    Ok(targets.iter().map(|target| program(&directory, target)).collect())
}

/// The program for a target.
fn program(directory: &Path, target: &str) -> PathBuf {
    directory.join(target).join("dist/belljar")
}

/// Installs cargo-zigbuild and Zig below the build directory. Returns the path of Zig.
fn tools(shell: &Shell) -> Result<PathBuf> {
    if !shell::exists("python3") {
        bail!("python3 is not installed, and Zig is installed from PyPI: run `apt-get install python3-venv`");
    }
    let stamp = shell.target.join("tools").join(ZIGBUILD);
    if !stamp.is_file() {
        setup::program(shell, ZIGBUILD, &[])?;
        fs::write(&stamp, "").with_context(|| format!("cannot write \"{}\"", stamp.display()))?;
    }
    let place = shell.target.join("tools/zig");
    setup::environment(&shell.root.join("xtask/dist/requirements.txt"), &place, "Zig")?;
    let asked = "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))";
    let zig = shell::capture(Command::new(place.join("bin/python")).args(["-c", asked]))?;
    Ok(zig.trim().into())
}

/// The value of `PATH` with the installed tools in front, so that cargo finds its command `zigbuild`.
fn search_path(shell: &Shell) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = [shell.target.join("tools/bin")].into_iter().chain(env::split_paths(&path));
    env::join_paths(directories).context("the build directory has a \":\" in its path, so it cannot be in PATH")
}

/// Sets the flags of the compilers: these of rustc, and those that replace the paths of this machine, which would get into messages of panics.
fn set_flags(shell: &Shell, directory: &Path, more: &[String], cargo: &mut Command) -> Result<()> {
    let home = match env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => env::home_dir().context("neither CARGO_HOME nor HOME is set, so cargo has no home")?.join(".cargo"),
    };
    // If two prefixes match, rustc and clang take the last: the build directory may be in the repository.
    let prefixes = [(shell.root.as_path(), "/belljar"), (&home, "/cargo"), (directory, "/target")];
    let flags = |option: &str| prefixes.map(|(path, name)| format!("{option}={}={name}", path.display()));
    let mut rust = flags("--remap-path-prefix").to_vec();
    rust.push(RANDOM_ADDRESSES.to_owned());
    rust.extend(more.iter().cloned());
    // The separator of the encoded flags allows spaces in paths.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
    cargo.env("CFLAGS", [&flags("-ffile-prefix-map")[..], &NO_DATES.map(str::to_owned)].concat().join(" "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Options> {
        parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn options_are_parsed() {
        let options = parsed(&["--target", TRIPLES[1], "--output", "out", "--namespace", "io.github.example"]).unwrap();
        assert_eq!(
            options,
            Options {
                targets: vec![TRIPLES[1]],
                output: Some("out".into()),
                namespace: Some("io.github.example".into()),
                ..Options::default()
            }
        );
        assert_eq!(parsed(&[]).unwrap(), Options::default());
    }

    #[test]
    fn wrong_options_are_named() {
        for (arguments, expected) in [
            (["--target", "riscv"].as_slice(), "\"riscv\""),
            (&["--output"], "--output needs a value"),
            (&["--sign"], "no argument \"--sign\""),
            (&["--program", "a", "--target", TRIPLES[0]], "leave out one of them"),
            (&["--publish", "ghcr.io/acme", "--target", TRIPLES[0]], "leave out one of them"),
            (&["--sign-key", "acme.key"], "name a registry with --publish"),
        ] {
            let error = parsed(arguments).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
