//! What a worker process has to know of the grants whose work the front does. Holds no secret, and nothing that connects.

use serde::{Deserialize, Serialize};

/// The grants of a mount that a worker process uses through the front, made by [`super::MountGrants::network_handover`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkHandover {
    /// The names of the headers that a guest can neither set nor read, beside those that no guest can.
    pub hidden_headers: Vec<String>,
    /// The destinations to which calls may open a TCP connection.
    pub endpoints: Vec<EndpointHandover>,
    /// The directories of files in memory.
    pub directories: Vec<MemoryHandover>,
}

/// One destination to which calls may open a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointHandover {
    /// The name of the kind of grant.
    pub kind: String,
    /// The host that the guest names, as its grant displays it.
    pub host: String,
    /// The port that the guest names.
    pub port: u16,
    /// Bytes of host memory that a connection may need besides its buffers.
    pub host_memory: u64,
}

/// One directory of files in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryHandover {
    /// The name of the kind of grant. The kind knows the names of all files, and how each is granted.
    pub kind: String,
    /// The names of the files that the mount may open.
    pub names: Vec<String>,
}
