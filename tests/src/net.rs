//! Networks of tests: two sockets of one port, and a network namespace for one test. The namespace has a public address
//! that leads to the test, and no connection to the machine's network.
//!
//! A program with several threads cannot enter the user namespace that this needs. So the test program starts itself
//! again inside the namespace.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::Command;
use std::time::Duration;

use crate::process;

/// The environment variable with the name of the test. It is set only inside the namespace.
const INSIDE: &str = "BELLJAR_TEST_NETWORK";

/// The longest time of a test inside a namespace. The test compiles its components again.
const PATIENCE: Duration = Duration::from_secs(300);

/// A public address that leads to this machine inside the namespace.
pub const PUBLIC: Ipv4Addr = Ipv4Addr::new(93, 184, 215, 14);

/// A port of this machine that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("a bound socket").port()
}

/// A TCP listener and a UDP socket with the same port on this machine. Neither blocks.
pub fn sockets_of_one_port() -> (TcpListener, UdpSocket) {
    let bind = || {
        let tcp = TcpListener::bind("127.0.0.1:0")?;
        let udp = UdpSocket::bind(tcp.local_addr()?)?;
        tcp.set_nonblocking(true)?;
        udp.set_nonblocking(true)?;
        Ok::<_, std::io::Error>((tcp, udp))
    };
    // Another program may have the UDP port of a free TCP port. Then the next try gets another port.
    (0..100).find_map(|_| bind().ok()).expect("a port that is free for TCP and UDP")
}

/// The name of the test to which this namespace belongs. `None` outside of such a namespace.
pub fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

/// Runs `body` in a network namespace of its own, where [`PUBLIC`] leads to this machine. `name` is the path of the test.
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
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "the test failed in its network namespace:\n{text}");
}
