//! The sockets of one call: decides on each name and each connection, and adds the decision to the call's record.

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use wasmtime_wasi::p2::bindings::sockets::network::ErrorCode;

use super::front_connection::FrontConnection;
use super::mount_state::SocketsMountState;
use crate::grants::editor::GrantSuggestion;
use crate::grants::front::FrontRequest;
use crate::grants::grant::CallScope;
use crate::grants::network::ByteStream;
use crate::grants::network::endpoint::{ConnectFailure, ConnectionScope, TcpEndpoint};
use crate::grants::network::host::{Host, parse_host_and_port};
use crate::grants::network::upstream_breaker::describe_pause;
use crate::grants::tcp;
use crate::model::limits::Traffic;
use crate::model::{DecisionKind, text};

/// The cure of a lookup of what is no name.
const NO_NAME: &str = "nothing allows this: it is not the name of a host";

/// The words before the name in the target of a lookup.
const LOOKUP: &str = "name lookup of ";

/// The cure of what no grant allows.
const NEVER: &str = "nothing allows this: a provider may only connect, by TCP or HTTP, to what the operator named";

/// The most characters of a name in a decision.
const MAX_NAME_CHARS: usize = 300;

/// The sockets of one call.
pub(in crate::grants) struct SocketsCallState {
    mount_state: Arc<SocketsMountState>,
    scope: ConnectionScope,
    pub(super) traffic: Traffic,
}

/// A connection, and its place among the mount's connections. In a worker process, the front has the place.
pub(super) type OpenConnection = (Box<dyn ByteStream>, Option<OwnedSemaphorePermit>);

/// A connection that is being made.
pub(super) type PendingConnection = Pin<Box<dyn Future<Output = Result<OpenConnection, ErrorCode>> + Send>>;

impl SocketsCallState {
    /// The sockets of a call of the mount.
    pub(in crate::grants) fn open(mount_state: &Arc<SocketsMountState>, scope: &CallScope<'_>) -> Self {
        Self {
            mount_state: Arc::clone(mount_state),
            scope: ConnectionScope {
                mount: scope.mount.clone(),
                record: scope.record.clone(),
                deadline: scope.deadline,
            },
            traffic: scope.limits.traffic,
        }
    }

    /// The call.
    pub(super) fn scope(&self) -> &ConnectionScope {
        &self.scope
    }

    /// Records an attempt that no grant can allow.
    pub(super) fn refuse(&self, target: &str) {
        self.deny(target, NEVER.to_owned());
    }

    fn deny(&self, target: &str, cure: String) {
        self.scope.record.add_decision(tcp::NAME, target, DecisionKind::Denied, || Some(cure));
    }

    /// The address of a host that the guest names.
    pub(super) fn resolve(&self, name: &str) -> Result<IpAddr, ErrorCode> {
        let host = match parse_host_and_port(name) {
            Ok((Host::Ip(address), None)) => return Ok(address),
            Ok((host, None)) => host,
            _ => {
                self.deny(&lookup_of(name), NO_NAME.to_owned());
                return Err(ErrorCode::InvalidArgument);
            }
        };
        let Host::Name(name) = &host else { return Err(ErrorCode::InvalidArgument) };
        self.mount_state.address_of(name).ok_or_else(|| {
            self.deny(&lookup_of(name), cure_of_lookup(self.scope.mount.as_str(), name));
            ErrorCode::AccessDenied
        })
    }

    /// Decides whether the guest may connect to `address`, and begins to connect. Also returns the bytes of host memory that
    /// the connection needs besides its buffers.
    pub(super) fn connect(&self, address: SocketAddr) -> Result<(PendingConnection, u64), ErrorCode> {
        let host = self.mount_state.host_of(address.ip());
        let Some(front) = self.scope.record.front() else { return self.connect_to(&host, address.port()) };
        let Some(host_memory) = self.mount_state.front_host_memory(&host, address.port()) else {
            return Err(self.deny_connection(&host, address.port()));
        };
        let opening = front.open(FrontRequest::Connect(host.to_string(), address.port()));
        let connection = FrontConnection::open(opening, self.scope.record.clone());
        let connecting = async move { Ok((Box::new(connection.await?) as Box<dyn ByteStream>, None)) };
        Ok((Box::pin(connecting), host_memory))
    }

    /// In the front: decides whether the guest of a worker process may connect to `host`, as the worker names it. See
    /// [`SocketsCallState::connect`].
    pub(super) fn connect_named(&self, host: &str, port: u16) -> Result<(PendingConnection, u64), ErrorCode> {
        match parse_host_and_port(host) {
            Ok((Host::Ip(address), None)) if port != 0 => self.connect_to(&self.mount_state.host_of(address), port),
            Ok((host, None)) if port != 0 => self.connect_to(&host, port),
            _ => {
                let target = format!("connect {}:{port}", text::excerpt(host, MAX_NAME_CHARS));
                self.deny(&target, "nothing allows this: it is not the name of a host and a port".to_owned());
                Err(ErrorCode::AccessDenied)
            }
        }
    }

    /// Refuses a connection that no grant allows.
    fn deny_connection(&self, host: &Host, port: u16) -> ErrorCode {
        let target = format!("{host}:{port}");
        self.deny(&format!("connect {target}"), suggestion(&target).cure(self.scope.mount.as_str()));
        ErrorCode::AccessDenied
    }

    fn connect_to(&self, host: &Host, port: u16) -> Result<(PendingConnection, u64), ErrorCode> {
        let endpoint = match self.mount_state.find(host, port) {
            Some(endpoint) => endpoint.clone(),
            None => {
                let unguarded = self.mount_state.unguarded(host, port);
                unguarded.ok_or_else(|| self.deny_connection(host, port))?
            }
        };
        let action = format!("connect {host}:{port}");
        let record = &self.scope.record;
        record.traffic().count_request(&self.traffic).map_err(|_| ErrorCode::NewSocketLimit)?;
        record.add_decision(endpoint.kind, &action, DecisionKind::Allowed, || None);
        let host_memory = endpoint.host_memory;
        let opening = run(Arc::clone(&self.mount_state), endpoint, self.scope.clone(), self.traffic.connections);
        Ok((Box::pin(opening), host_memory))
    }
}

/// Connects, and records why there is no connection.
async fn run(
    mount_state: Arc<SocketsMountState>,
    endpoint: TcpEndpoint,
    scope: ConnectionScope,
    connections: usize,
) -> Result<OpenConnection, ErrorCode> {
    let (record, end) = (scope.record.clone(), scope.end());
    let action = format!("connect {endpoint}");
    let tell = |kind, why: String| record.add_decision(endpoint.kind, &action, kind, || Some(why));
    let slots = mount_state.connection_slots.get(connections).acquire_owned();
    let slot = timeout_at(end, slots).await.ok().and_then(Result::ok).ok_or(ErrorCode::NewSocketLimit)?;
    let key = (endpoint.host.to_string(), endpoint.port);
    if let Err(pause) = mount_state.upstreams.check(&key, Instant::now()) {
        tell(DecisionKind::Unavailable, describe_pause(pause));
        return Err(ErrorCode::RemoteUnreachable);
    }
    let result = Arc::clone(&endpoint.connector).connect(scope).await;
    let is_reached = !matches!(result, Err(ConnectFailure::Unavailable(_)));
    mount_state.upstreams.record_result(&key, is_reached, Instant::now());
    match result {
        Ok(stream) => Ok((stream, Some(slot))),
        Err(ConnectFailure::Denied(cure)) => {
            tell(DecisionKind::Denied, cure);
            Err(ErrorCode::AccessDenied)
        }
        Err(ConnectFailure::Unavailable(why)) => {
            tell(DecisionKind::Unavailable, why);
            Err(ErrorCode::RemoteUnreachable)
        }
        Err(ConnectFailure::Failed(why)) => {
            tell(DecisionKind::Unavailable, why);
            Err(ErrorCode::ConnectionAborted)
        }
    }
}

fn lookup_of(name: &str) -> String {
    format!("{LOOKUP}{}", text::excerpt(name, MAX_NAME_CHARS))
}

fn cure_of_lookup(mount: &str, name: &str) -> String {
    format!("{}, with the port of the server", suggestion(&format!("{name}:PORT")).cure(mount))
}

/// The cure of a refusal that a worker process of `mount` reports with these words. Only its target counts: a person may
/// paste a cure into a shell.
pub(in crate::grants) fn cure_of_refusal(mount: &str, target: &str, said: &str) -> Option<String> {
    if let Some(known) = [NEVER, NO_NAME].into_iter().find(|known| *known == said) {
        return Some(known.to_owned());
    }
    if let Some(name) = target.strip_prefix(LOOKUP) {
        let (Host::Name(name), None) = parse_host_and_port(name).ok()? else { return None };
        return Some(cure_of_lookup(mount, &name));
    }
    let (host, Some(port)) = parse_host_and_port(target.strip_prefix("connect ")?).ok()? else { return None };
    Some(suggestion(&format!("{host}:{port}")).cure(mount))
}

/// The grant of a TCP connection to `target`.
fn suggestion(target: &str) -> GrantSuggestion {
    GrantSuggestion {
        line: format!("tcp = [\"{target}\"]"),
        flags: vec!["--tcp".to_owned(), target.to_owned()],
        prerequisite: None,
    }
}
