//! The packages of Debian with programs that tests start. `cargo xtask test` installs them in CI; elsewhere, tests that need one
//! that is missing are skipped.

use std::fs;
use std::path::{Path, PathBuf};

/// A package.
pub struct Package {
    /// Its name for `apt-get`, and the family of the tests that need it, in `BELLJAR_SKIP`.
    pub name: &'static str,
    /// The path of a program in it. One folder may be `*`: any.
    pub program: &'static str,
}

/// A server of PostgreSQL. Its other programs are beside this one.
pub const POSTGRESQL: Package = Package { name: "postgresql", program: "/usr/lib/postgresql/*/bin/initdb" };

/// Prometheus. Its other programs are beside this one.
pub const PROMETHEUS: Package = Package { name: "prometheus", program: "/usr/bin/prometheus" };

/// The browser.
pub const CHROMIUM: Package = Package { name: "chromium", program: "/usr/bin/chromium" };

/// The balancer nginx.
pub const NGINX: Package = Package { name: "nginx", program: "/usr/sbin/nginx" };

/// The balancer HAProxy.
pub const HAPROXY: Package = Package { name: "haproxy", program: "/usr/sbin/haproxy" };

/// The store of replicas.
pub const REDIS: Package = Package { name: "redis-server", program: "/usr/bin/redis-server" };

/// The program that checks units of systemd.
pub const SYSTEMD: Package = Package { name: "systemd", program: "/usr/bin/systemd-analyze" };

/// A registry of containers.
pub const REGISTRY: Package = Package { name: "docker-registry", program: "/usr/bin/docker-registry" };

/// The program that copies between registries.
pub const SKOPEO: Package = Package { name: "skopeo", program: "/usr/bin/skopeo" };

/// The program that counts instructions.
pub const VALGRIND: Package = Package { name: "valgrind", program: "/usr/bin/valgrind" };

/// The packages that tests of the real binary need.
pub const OF_TESTS: [Package; 9] = [POSTGRESQL, PROMETHEUS, CHROMIUM, NGINX, HAPROXY, REDIS, SYSTEMD, REGISTRY, SKOPEO];

impl Package {
    /// The path of its program, if it is installed: of the last folder by name, if there are several.
    pub fn find(&self) -> Option<PathBuf> {
        find(self.program)
    }
}

fn find(path: &str) -> Option<PathBuf> {
    let Some((parent, rest)) = path.split_once("/*/") else {
        return Some(PathBuf::from(path)).filter(|path| path.is_file());
    };
    let folders = fs::read_dir(Path::new(parent)).into_iter().flatten().flatten();
    folders.map(|folder| folder.path().join(rest)).filter(|path| path.is_file()).max()
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn any_folder_may_hold_a_program() {
        let is_found = |path| find(path).is_some_and(|found| found.ends_with("status"));
        assert!(is_found("/proc/self/status"));
        assert!(is_found("/proc/*/status"));
        assert!(!is_found("/proc/*/no-such-file"));
        assert!(!is_found("/no-such-folder/*/status"));
    }
}
