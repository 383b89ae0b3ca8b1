//! Files that the helper process opens for the server. Only the descriptor crosses: the server cannot open the path itself.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// The byte that a descriptor goes with.
const CARRIER: &[u8] = b"f";

/// Sends an open file over `socket`.
///
/// # Errors
/// The other side is gone.
pub(super) fn send(socket: impl AsFd, file: &File) -> io::Result<()> {
    let lent = [file.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&lent));
    sendmsg(socket, &[IoSlice::new(CARRIER)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives an open file from `socket`.
///
/// # Errors
/// There is none.
pub(super) fn receive(socket: &UnixStream) -> io::Result<File> {
    let mut bytes = [0; CARRIER.len()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let file: Option<OwnedFd> = descriptors.next().and_then(|mut descriptors| descriptors.next());
    file.map(File::from).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
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
