//! Packages of Debian with programs that tests run. CI installs those that are missing. Elsewhere, tests that need one of them are
//! skipped.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::output;
use crate::report::Missing;
use crate::shell::{self, Shell};

/// A package, as `apt-get` names it. Its name is the family of the tests that need it, in `BELLJAR_SKIP`.
pub(crate) struct Package {
    name: &'static str,
    /// The path of a program in it. One folder may be `*`: any.
    program: &'static str,
}

/// A server of PostgreSQL.
pub(crate) const POSTGRES: Package = Package { name: "postgresql", program: "/usr/lib/postgresql/*/bin/initdb" };

/// A registry of containers.
pub(crate) const REGISTRY: Package = Package { name: "docker-registry", program: "/usr/bin/docker-registry" };

/// The program that counts instructions.
pub(crate) const VALGRIND: Package = Package { name: "valgrind", program: "/usr/bin/valgrind" };

/// The packages with servers and programs that tests start.
pub(crate) const OF_TESTS: [Package; 9] = [
    POSTGRES,
    Package { name: "prometheus", program: "/usr/bin/prometheus" },
    Package { name: "chromium", program: "/usr/bin/chromium" },
    Package { name: "nginx", program: "/usr/sbin/nginx" },
    Package { name: "haproxy", program: "/usr/sbin/haproxy" },
    Package { name: "redis-server", program: "/usr/bin/redis-server" },
    Package { name: "systemd", program: "/usr/bin/systemd-analyze" },
    REGISTRY,
    Package { name: "skopeo", program: "/usr/bin/skopeo" },
];

/// Makes packages available. In CI, installs those that are missing; elsewhere, returns them.
///
/// # Errors
/// If an installation fails.
pub(crate) fn missing(shell: &Shell, packages: &[Package]) -> Result<Vec<Missing>> {
    let missing: Vec<_> = packages.iter().filter(|package| !is_file(package.program)).collect();
    if !shell.ci {
        return Ok(missing.into_iter().map(reason).collect());
    }
    if !missing.is_empty() {
        install(&missing.iter().map(|package| package.name).collect::<Vec<_>>())?;
    }
    Ok(Vec::new())
}

fn reason(package: &Package) -> Missing {
    let Package { name, program } = package;
    let reason =
        format!("{program} is missing: run `apt-get install {name}`, or use the package manager of your system");
    Missing { family: name, reason }
}

/// True if a file has this path. A folder in it may be `*`: any.
fn is_file(path: &str) -> bool {
    let Some((parent, rest)) = path.split_once("/*/") else {
        return Path::new(path).is_file();
    };
    let folders = fs::read_dir(parent).into_iter().flatten().flatten();
    folders.into_iter().any(|folder| folder.path().join(rest).is_file())
}

/// Installs packages by one command, because each command updates the index of manuals and more.
fn install(packages: &[&str]) -> Result<()> {
    output::line(&format!("installing {}", packages.join(", ")));
    let is_root = shell::capture(Command::new("id").arg("-u"))?.trim() == "0";
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if is_root { "apt-get" } else { "sudo" });
        command.args(if is_root { [].as_slice() } else { &["--non-interactive", "apt-get"] }).arg("--quiet");
        shell::run_quietly(command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    apt(&["update"])?;
    apt(&[&["install", "--yes", "--no-install-recommends"], packages].concat())
}

#[cfg(test)]
mod tests {
    use super::is_file;

    #[test]
    fn any_folder_may_hold_a_program() {
        assert!(is_file("/proc/self/status"));
        assert!(is_file("/proc/*/status"));
        assert!(!is_file("/proc/*/no-such-file"));
        assert!(!is_file("/no-such-folder/*/status"));
    }
}
