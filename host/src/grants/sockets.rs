//! `wasi:sockets` for guests: TCP connections to the endpoints that grants opened, and to nothing else.
//!
//! A guest gets no network. A name that a grant names stands for an address that belljar invents; a connection to this
//! address leads to the grant. So the guest learns no address, sends no name to a name server, and cannot make one name
//! stand for two addresses. The kind of grant connects: it resolves, judges every address, and speaks TLS if it must.
//!
//! UDP, listening, binding and every other name or address are refused and recorded.

mod broker;
mod call_state;
mod connection_frames;
mod front_connection;
mod functions;
mod mount_state;
mod socket;
mod streams;

pub(super) use broker::serve_connection;
pub(super) use call_state::{SocketsCallState, cure_of_refusal};
pub(super) use functions::{HasSockets, link};
pub(super) use mount_state::SocketsMountState;
