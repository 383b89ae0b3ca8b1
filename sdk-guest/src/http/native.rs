//! Outside of a sandbox there is no host that grants requests, so each of them is denied.

use std::convert::Infallible;
use std::io;

use super::url::Url;
use super::{Length, Request, Response};
use crate::{Error, Result};

/// A request that was sent. There is none.
#[derive(Debug)]
pub(super) struct Upload(Infallible);

/// The body of an answer. There is none.
#[derive(Debug)]
pub(super) struct Body(Infallible);

/// Denies the request.
pub(super) fn send(_request: &Request, url: Url, _length: Length) -> Result<Upload> {
    Err(Error::denied(format_args!("no request to {url} was granted")))
}

impl Upload {
    pub(super) fn finish(self) -> Result<Response> {
        match self.0 {}
    }
}

impl io::Write for Upload {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl io::Read for Body {
    fn read(&mut self, _bytes: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}
