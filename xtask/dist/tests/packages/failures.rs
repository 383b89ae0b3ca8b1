//! What cannot be packed: each error names the thing and the cure, and no package is written.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use belljar_tests::places;

use crate::support::request;

/// The error of packing `program` and `providers`.
fn error(program: &Path, providers: &Path) -> String {
    let place = tempfile::tempdir().unwrap();
    let output = place.path().join("output");
    let mut request = request(&output);
    request.programs = vec![program.to_path_buf()];
    request.providers = providers.to_path_buf();
    let error = format!("{:#}", belljar_dist::pack(&request).expect_err("this cannot be packed"));
    assert!(!output.exists(), "packages were written before the error: {error}");
    error
}

fn assert_names(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
}

#[test]
fn a_missing_program_is_named() {
    let error = error(Path::new("/nowhere/belljar"), &places::target().join("plugins"));
    assert_names(&error, &["\"/nowhere/belljar\"", "cargo xtask build", "--program"]);
}

#[test]
fn a_program_of_a_foreign_architecture_is_named() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("belljar");
    let mut bytes = fs::read(places::host()).unwrap();
    // The field `e_machine` of the ELF header: 183 is AArch64, 62 is x86-64.
    let (machine, foreign) = if cfg!(target_arch = "aarch64") { (62_u16, "x86_64") } else { (183, "aarch64") };
    bytes[18..20].copy_from_slice(&machine.to_le_bytes());
    fs::write(&program, bytes).unwrap();
    let error = error(&program, &places::target().join("plugins"));
    assert_names(&error, &["belljar\" is a program for", foreign, std::env::consts::ARCH]);
}

#[test]
fn a_missing_second_program_is_named() {
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("belljar");
    fs::copy(places::host(), &program).unwrap();
    let error = error(&program, &places::target().join("plugins"));
    assert_names(&error, &["belljar-join\"", "cargo xtask build"]);
}

#[test]
fn a_directory_without_providers_is_named() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("README.md"), "no provider").unwrap();
    let shown = format!("\"{}\"", place.path().display());
    assert_names(&error(&places::host(), place.path()), &[&shown, "no .wasm file", "--providers"]);
    let absent = place.path().join("absent");
    assert_names(&error(&places::host(), &absent), &["absent\"", "cargo xtask build", "--providers"]);
}

#[test]
fn another_program_is_named() {
    let place = tempfile::tempdir().unwrap();
    let script = place.path().join("belljar");
    fs::write(&script, "#!/bin/sh\necho belljar 0.1.0\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let providers = places::target().join("plugins");
    assert_names(&error(&script, &providers), &["belljar\"", "no ELF file"]);
    // A program of this machine, but not belljar: its version is another one.
    let other = error(Path::new("/bin/true"), &providers);
    assert_names(&other, &["--version\" prints", "build the program again"]);
}
