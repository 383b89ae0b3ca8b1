//! Messages with descriptors over a Unix socket. One message is one call of the kernel, so the socket must keep the
//! bounds of messages (`SOCK_SEQPACKET`), or the message must be a single byte.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The most descriptors of a message.
const MAX_FILES: usize = 2;

/// Sends a message. With [`SendFlags::DONTWAIT`] it never waits.
///
/// # Errors
/// If the other side is gone, or takes no more now.
pub(super) fn send(socket: impl AsFd, bytes: &[u8], files: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL | flags)?;
    Ok(())
}

/// Receives a message into `buffer`: its length, and its descriptors. The length is 0 if the other side is gone.
///
/// # Errors
/// If the socket fails, or the message is longer than the buffer.
pub(super) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut files = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(come) = message {
            files.extend(come);
        }
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((received.bytes, files))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn messages_keep_their_bounds_and_their_descriptors() {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let (held, lent) = UnixStream::pair().unwrap();
        send(&one, b"first", &[lent.as_fd(), held.as_fd()], SendFlags::empty()).unwrap();
        send(&one, b"second", &[], SendFlags::DONTWAIT).unwrap();
        send(&one, b"too long", &[], SendFlags::empty()).unwrap();
        let mut buffer = [0; 7];
        let (length, files) = receive(&other, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], files.len()), (&b"first"[..], 2));
        let (length, files) = receive(&other, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], files.len()), (&b"second"[..], 0));
        assert!(receive(&other, &mut buffer).is_err());
        drop(one);
        assert_eq!(receive(&other, &mut buffer).unwrap().0, 0);
        assert!(send(&other, b"x", &[], SendFlags::empty()).is_err());
    }
}
