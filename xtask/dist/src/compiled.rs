//! Compiled code of the large providers, so that their first start takes no longer than that of the others.
//!
//! The program compiles for the processors that most machines have. On another processor, belljar compiles as it does
//! without this code.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context as _, Result, bail};

use crate::digest;
use crate::program::Program;
use crate::tree::{PROVIDERS, Tree};

/// The size from which a provider is large, in bytes. A smaller one compiles in about a second.
const LARGE: usize = 4 << 20;

/// Adds the code of each large provider in the tree. `program` runs on this machine.
pub(crate) fn add(tree: &mut Tree, program: &Program) -> Result<()> {
    let is_large = |path: &str, bytes: &[u8]| path.starts_with(PROVIDERS) && bytes.len() >= LARGE;
    let large: Vec<_> = tree
        .iter()
        .filter(|(path, file)| is_large(path, &file.bytes))
        .map(|(path, file)| (path.to_owned(), file.bytes.clone()))
        .collect();
    for (path, bytes) in large {
        let code = compile(program, &bytes).with_context(|| format!("cannot compile the provider \"{path}\""))?;
        // belljar looks for the code of a component by its digest.
        tree.file(format!("{PROVIDERS}/compiled/{}.cwasm", digest::hex(&bytes)), code);
    }
    Ok(())
}

/// Compiles a component with the program, which has an internal verb for that.
fn compile(program: &Program, component: &[u8]) -> Result<Vec<u8>> {
    let shown = format!("`{} compile-component --common`", program.path.display());
    let mut child = Command::new(&program.path)
        .args(["compile-component", "--common"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {shown}"))?;
    let mut input = child.stdin.take().context("the program has no standard input")?;
    let done = thread::scope(|scope| {
        // If the program ends early, its error is the reason.
        scope.spawn(move || drop(input.write_all(component)));
        child.wait_with_output()
    })?;
    if !done.status.success() {
        bail!("{shown} failed ({}): {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    }
    Ok(done.stdout)
}
