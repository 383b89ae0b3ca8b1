//! The grant `http`: requests to the origins that the operator named, and to no others.
//!
//! A request takes these steps:
//!
//! 1. The guest hands over the request. belljar parses it once into a [`origin_grant::RequestTarget`], decides on this
//!    parsed form, and sends this form.
//! 2. belljar resolves the host, checks the address, and opens a new connection to exactly this address.
//! 3. After the decision belljar adds the credentials of the grant. It masks them in the response.
//!
//! belljar does not follow redirects. A guest may follow one with another request, which is decided like any other.

pub mod oauth;
pub mod origin;
pub mod origin_grant;
pub mod path;
pub mod service_client;
pub mod service_metadata;
pub mod service_url;

mod broker;
mod call_state;
mod client_connection;
mod connect;
mod editor;
mod error;
mod exchange;
mod exchange_frames;
mod front_exchange;
mod headers;
mod kind;
mod mount_state;
mod name;
mod wiped;

pub(super) use broker::HttpBroker;
pub use call_state::HttpCallState;
pub use error::{HttpError, MethodError, OriginGrantError, OriginGrantProblem, TargetError};
pub(super) use mount_state::HttpMountState;
pub use name::Http;
