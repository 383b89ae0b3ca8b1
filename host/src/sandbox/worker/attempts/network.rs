//! Attempts on the network: sockets of every family.

use super::kernel::{Attempt, AttemptArguments, Attempted, address, call, descriptor, plain};

/// The attempts on the network.
pub(super) const LIST: &[(&str, Attempt)] = &[
    ("socket", |a| descriptor(libc::SYS_socket, &[a.number(0), a.number(1), a.number(2)])),
    ("connect-tcp", connect_tcp),
    ("connect-unix", |a| on_socket(1, |socket| connect_unix(socket, a.path(0).to_bytes(), false))),
    ("connect-abstract", |a| on_socket(1, |socket| connect_unix(socket, a.path(0).to_bytes(), true))),
    ("socketpair", |_| {
        let pair = [0_i32; 2];
        plain(libc::SYS_socketpair, &[1, 1, 0, address(&pair)])
    }),
    ("listen", |_| {
        on_socket(2, |socket| {
            let any = [2_u16, 0, 0, 0, 0, 0, 0, 0];
            call(libc::SYS_bind, &[socket, address(&any), 16])?;
            plain(libc::SYS_listen, &[socket, 1])
        })
    }),
    // With another ABI of the same processor, system calls have other numbers.
    ("socket-x32", |_| descriptor(0x4000_0000 | libc::SYS_socket, &[2, 1, 0])),
    ("accept", |_| descriptor(libc::SYS_accept4, &[0, 0, 0, 0])),
    ("set-option", |_| {
        // A larger buffer of the socket to the front.
        let size = [1_u32 << 16; 1];
        plain(libc::SYS_setsockopt, &[0, 1, 7, address(&size), 4])
    }),
];

fn on_socket(family: usize, work: impl FnOnce(usize) -> Attempted) -> Attempted {
    let socket = call(libc::SYS_socket, &[family, 1, 0])?;
    let done = work(socket);
    let _ = call(libc::SYS_close, &[socket]);
    done
}

/// Connects to a port of this machine.
fn connect_tcp(arguments: &AttemptArguments) -> Attempted {
    let port = u16::try_from(arguments.number(0)).unwrap_or_default();
    let address_of = [2_u16, port.to_be(), u16::from_ne_bytes([127, 0]), u16::from_ne_bytes([0, 1]), 0, 0, 0, 0];
    on_socket(2, |socket| plain(libc::SYS_connect, &[socket, address(&address_of), 16]))
}

/// Connects to a Unix socket by its path or its abstract name.
fn connect_unix(socket: usize, name: &[u8], is_abstract: bool) -> Attempted {
    let mut bytes = vec![1_u8, 0];
    bytes.extend(is_abstract.then_some(0));
    bytes.extend(name);
    bytes.extend((!is_abstract).then_some(0));
    plain(libc::SYS_connect, &[socket, bytes.as_ptr() as usize, bytes.len()])
}
