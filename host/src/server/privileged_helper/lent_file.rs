//! Files that the helper process opens for the server. Only the descriptor crosses: the server cannot open the path itself.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::net::SendFlags;

use crate::server::packet;

/// The byte that a descriptor goes with.
const CARRIER: &[u8] = b"f";

/// Sends an open file over `socket`.
///
/// # Errors
/// The other side is gone.
pub(super) fn send(socket: impl AsFd, file: &File) -> io::Result<()> {
    packet::send(socket, CARRIER, &[file.as_fd()], SendFlags::empty())
}

/// Receives an open file from `socket`.
///
/// # Errors
/// There is none.
pub(super) fn receive(socket: &UnixStream) -> io::Result<File> {
    let (_, files) = packet::receive(socket, &mut [0; CARRIER.len()])?;
    files.into_iter().next().map(File::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_file_crosses_with_its_position() {
        let (one, other) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"text").unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        send(&one, &file).unwrap();
        drop(file);
        let mut text = String::new();
        receive(&other).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        drop(one);
        assert!(receive(&other).is_err());
    }
}
