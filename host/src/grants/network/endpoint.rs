//! Endpoints: the destinations to which a guest may open a TCP connection. Kinds of grants make them; `grants/sockets`
//! gives them to guests.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ByteStream;
use super::host::Host;
use crate::grants::call_record::CallRecord;
use crate::model::MountName;

/// One destination that a grant opens.
#[derive(Clone)]
pub struct TcpEndpoint {
    /// The name of the kind of grant.
    pub(in crate::grants) kind: &'static str,
    /// The host that the guest names.
    pub(in crate::grants) host: Host,
    /// The port that the guest names.
    pub(in crate::grants) port: u16,
    /// Makes the connections.
    pub(in crate::grants) connector: Arc<dyn Connector>,
    /// Bytes of host memory that a connection may need besides its buffers.
    pub(in crate::grants) host_memory: u64,
}

impl fmt::Display for TcpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The call that opens a connection.
#[derive(Clone)]
pub(in crate::grants) struct ConnectionScope {
    pub(in crate::grants) mount: MountName,
    pub(in crate::grants) record: CallRecord,
    /// The deadline of the call.
    pub(in crate::grants) deadline: Instant,
}

impl ConnectionScope {
    /// How much longer than a call the work for it may last. The end of the call comes first: otherwise the guest would
    /// hear that its request or its connection failed, and could answer so.
    pub(in crate::grants) const GRACE: Duration = Duration::from_millis(500);

    /// When belljar gives up what it does for the connection.
    pub(in crate::grants) fn end(&self) -> Instant {
        self.deadline + Self::GRACE
    }
}

/// A connection, or why there is none.
pub(in crate::grants) type Connecting =
    Pin<Box<dyn Future<Output = Result<Box<dyn ByteStream>, ConnectFailure>> + Send>>;

/// Makes the connections of one endpoint.
pub(in crate::grants) trait Connector: Send + Sync {
    /// Connects for one call. Dropping the future ends the attempt; dropping the stream ends the connection.
    fn connect(self: Arc<Self>, scope: ConnectionScope) -> Connecting;
}

/// Why there is no connection.
#[derive(Debug)]
pub(in crate::grants) enum ConnectFailure {
    /// The grant does not allow it. Holds the cure.
    Denied(String),
    /// The destination cannot be reached now. Holds the reason.
    Unavailable(String),
    /// The destination answered, but not as expected. Holds the reason.
    Failed(String),
}
