//! The frames of one connection between a call in a worker process and the front: first the answer of the front, then the
//! bytes in both directions.

use serde::{Deserialize, Serialize};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

use crate::grants::frames::BytePiece;
use crate::model::error::Limit;

/// The answer of the front.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ConnectAnswer {
    Connected,
    /// There is no connection. Also holds the limit on network traffic that the call has reached in the front.
    Refused(ConnectRefusal, Option<Limit>),
}

/// The errors of `wasi:sockets` that belljar's code makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ConnectRefusal {
    Denied,
    Limit,
    Unreachable,
    Aborted,
}

impl From<ErrorCode> for ConnectRefusal {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::AccessDenied => Self::Denied,
            ErrorCode::NewSocketLimit => Self::Limit,
            ErrorCode::RemoteUnreachable => Self::Unreachable,
            _ => Self::Aborted,
        }
    }
}

impl From<ConnectRefusal> for ErrorCode {
    fn from(refusal: ConnectRefusal) -> Self {
        match refusal {
            ConnectRefusal::Denied => Self::AccessDenied,
            ConnectRefusal::Limit => Self::NewSocketLimit,
            ConnectRefusal::Unreachable => Self::RemoteUnreachable,
            ConnectRefusal::Aborted => Self::ConnectionAborted,
        }
    }
}

/// Bytes of a connection, or their end.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ConnectionFrame {
    Data(BytePiece),
    /// This direction ends.
    End,
    /// The connection failed.
    Failed,
}
