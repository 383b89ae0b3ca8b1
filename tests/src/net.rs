//! A network of its own for one test, with a public address that leads to this very process. Nothing of it is seen by, or
//! sees, anything outside.
//!
//! A kernel gives a network to a process, not to a thread: the test runs itself once more, inside.

use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use crate::process;

/// Set for the run inside: the name of the test.
const INSIDE: &str = "BELLJAR_TEST_NETWORK";

/// How long a test inside may take: it compiles its components anew.
const PATIENCE: Duration = Duration::from_secs(300);

/// An address of the public internet, which leads here.
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);

/// The name of the test whose network this is; none on the machine's own.
pub fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// Runs `body` in a network of its own, where [`PUBLIC`] leads to this machine. `name`: the path of the test, as it is
/// chosen on the command line.
pub fn isolated(name: &str, body: impl FnOnce()) {
    if inside().is_some() {
        return body();
    }
    let program = std::env::current_exe().expect("a test program");
    let mut command = Command::new("unshare");
    let setup = format!("ip link set lo up && ip addr add {PUBLIC}/32 dev lo && exec \"$@\"");
    command.args(["--net", "--map-root-user", "sh", "-c", &setup, "sh"]).arg(program);
    command.args([name, "--exact", "--nocapture"]).env(INSIDE, name.replace("::", "-"));
    let output = process::run(command, PATIENCE);
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && told.contains("1 passed"), "in a network of its own:\n{told}");
}
