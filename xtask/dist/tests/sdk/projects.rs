//! A project of each language, built with the SDK from its package.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use belljar_tests::places;

use crate::common::{VERSION, run};
use crate::component::assert_provider;
use crate::support::{Project, command, package, path, unpack};

#[test]
fn cargo_builds_with_the_crate() {
    if places::lacks("languages") {
        return;
    }
    let project = Project::without_sdk("rust", &["belljar-guest", "wit"]);
    unpack(&package("belljar-guest-VERSION.crate"), &project.path(""), 0);
    project.replace("Cargo.toml", "path = \"belljar-guest\"", &format!("path = \"belljar-guest-{VERSION}\""));
    fs::copy(places::repository().join("Cargo.lock"), project.path("Cargo.lock")).unwrap();
    // The project of `cargo xtask languages` has the same dependencies, so they are compiled already.
    let target = places::target().join("languages/rust/target");
    // Offline, cargo cannot take the crate from elsewhere.
    run(project.printed("build").arg("--offline").env("CARGO_TARGET_DIR", &target));
    let built = Path::new(project.component()).strip_prefix("target").unwrap();
    assert_provider(&target.join(built));
}

/// Installs the npm package into a project, and builds and tests the project.
fn npm(project: &Project) {
    project.replace("package.json", "node belljar-guest/", "node node_modules/@belljar/guest/");
    let mut npm = project.command("npm");
    // `cargo xtask languages` has filled the cache of npm.
    npm.args(["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run(npm.arg(package("belljar-guest-VERSION.tgz")));
    run(&mut project.printed("build"));
    assert_provider(&project.path(project.component()));
    run(&mut project.printed("test"));
}

#[test]
fn npm_installs_the_package_for_javascript() {
    if places::lacks("languages") {
        return;
    }
    npm(&Project::without_sdk("javascript", &["belljar-guest", "wit/deps"]));
}

#[test]
fn npm_installs_the_package_for_typescript() {
    if places::lacks("languages") {
        return;
    }
    let project = Project::without_sdk("typescript", &["belljar-guest", "wit/deps"]);
    project.replace("tsconfig.json", ", \"belljar-guest/src/*.d.ts\"", "");
    npm(&project);
}

/// Installs a wheel into a new environment of the project, and returns the directory of the environment.
fn environment(project: &Project, wheel: &Path) -> PathBuf {
    let environment = project.beside("environment");
    run(command("python3").args(["-m", "venv", "--without-pip"]).arg(&environment));
    let mut pip = command("python3");
    pip.args(["-m", "pip", "--python"]).arg(environment.join("bin/python"));
    run(pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-index"]).arg(wheel));
    environment
}

#[test]
fn pip_installs_the_wheel() {
    if places::lacks("languages") {
        return;
    }
    let project = Project::without_sdk("python", &["belljar_guest", "wit"]);
    let environment = environment(&project, &package("belljar_guest-VERSION-py3-none-any.whl"));
    let activated = |program: &str| {
        let mut command = project.command(program);
        command.env("PATH", path(&[environment.join("bin")])).env("VIRTUAL_ENV", &environment);
        command
    };
    let interface = run(activated("python3").args(["-m", "belljar_guest"]));
    fs::create_dir(project.path("build")).unwrap();
    let mut componentize = activated("componentize-py");
    componentize.args(["-d", interface.trim(), "-d", "world.wit", "-w", "local:project/project"]);
    run(componentize.args(["componentize", "component", "-o", project.component()]));
    assert_provider(&project.path(project.component()));
    run(activated("python3").args(["-m", "unittest", "discover", "-s", "tests", "-t", "."]));
}

#[test]
fn the_source_distribution_makes_the_same_modules() {
    if places::lacks("languages") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut pip = command("python3");
    // The builder is one of the tools.
    pip.args(["-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]);
    pip.args(["--no-build-isolation", "--wheel-dir"]).arg(place.path());
    run(pip.arg(package("belljar_guest-VERSION.tar.gz")));
    let name = format!("belljar_guest-{VERSION}-py3-none-any.whl");
    let modules = |wheel: &Path| {
        let mut archive = zip::ZipArchive::new(fs::File::open(wheel).unwrap()).unwrap();
        let mut modules = BTreeMap::new();
        for index in 0..archive.len() {
            let mut file = archive.by_index(index).unwrap();
            let name = file.name().unwrap().into_owned();
            if name.starts_with("belljar_guest/") && file.is_file() {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                modules.insert(name, bytes);
            }
        }
        modules
    };
    let (packed, built) = (modules(&package(&name)), modules(&place.path().join(&name)));
    assert!(packed.contains_key("belljar_guest/wit/provider.wit"), "{:?}", packed.keys());
    assert_eq!(packed.keys().collect::<Vec<_>>(), built.keys().collect::<Vec<_>>());
    assert!(packed == built, "the modules differ");
}

#[test]
fn go_takes_the_module_from_the_unpacked_proxy() {
    if places::lacks("languages") {
        return;
    }
    let project = Project::without_sdk("go", &["belljar", "adapter", "wit"]);
    let proxy = project.beside("proxy");
    unpack(&package("belljar-guest-go-VERSION.tar.gz"), &proxy, 1);
    let cache = project.beside("modules");
    let go = |program: &str| {
        let mut command = project.command(program);
        command.env("GOPROXY", format!("file://{}", proxy.display())).env("GOMODCACHE", &cache);
        command.env("GONOSUMDB", "belljar.internal,go.bytecodealliance.org").env("GOTOOLCHAIN", "local");
        // The directory can be removed after the test. By default, modules are read-only.
        command.env("GOFLAGS", "-modcacherw").env_remove("GOPRIVATE");
        command
    };
    let manifest = fs::read_to_string(project.path("go.mod")).unwrap();
    let version = manifest.lines().find(|line| line.starts_with("go ")).unwrap();
    project.write("go.mod", &format!("module month-shelf\n\n{version}\n"));
    for file in ["main.go", "provider.go", "provider_test.go"] {
        project.replace(file, "\"month-shelf/belljar\"", "\"belljar.internal/belljar\"");
    }
    let component = "{{.Dir}}' belljar.internal/belljar)/component.mk";
    project.write("Makefile", &format!("NAME = month_shelf\ninclude $(shell go list -m -f '{component}\n"));
    let wanted = [format!("belljar.internal/belljar@v{VERSION}"), "go.bytecodealliance.org/pkg@v0.0.0".to_owned()];
    run(go("go").arg("get").args(wanted));
    run(&mut go("make"));
    assert_provider(&project.path(project.component()));
    run(go("go").args(["test", "."]));
}

/// Unpacks an archive in a new directory, and builds the example. Then runs make with each of `more`.
fn example(language: &str, more: &[&str]) {
    if places::lacks("languages") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let project = place.path();
    unpack(&package(&format!("belljar-guest-{language}-VERSION.tar.gz")), project, 1);
    run(command("cp").args(["-R", "belljar/example/.", "."]).current_dir(project));
    run(command("make").current_dir(project));
    assert_provider(&project.join("build/my_provider.wasm"));
    for goal in more {
        run(command("make").arg(goal).current_dir(project));
    }
}

#[test]
fn the_example_in_c_is_built_from_the_archive() {
    example("c", &["test"]);
}

#[test]
fn the_example_in_cpp_is_built_from_the_archive() {
    // Its unit tests take longer to compile than all else here. `cargo xtask languages` runs them.
    example("cpp", &[]);
}

#[test]
fn the_example_in_zig_is_built_from_the_archive() {
    example("zig", &["test"]);
}
