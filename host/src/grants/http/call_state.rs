//! The state of the grant `http` in a call: decides on each request, and adds the decision to the call's record.

use std::net::IpAddr;
use std::sync::Arc;

use ::http::{Method, Request, Response, StatusCode};
use tokio::sync::oneshot;
use tokio::time::Instant;
use wasmtime_wasi_http::p2::DEFAULT_OUTGOING_BODY_CHUNK_SIZE;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use super::client_connection::ConnectionDriver;
use super::connect::ConnectError;
use super::error::MethodError;
use super::exchange::{self, AllowedRequest, ExchangeFailure, QueuePosition};
use super::front_exchange;
use super::mount_state::HttpMountState;
use super::name::NAME;
use super::oauth::bearer_request::RepeatableRequest;
use super::oauth::token_error::AccessTokenError;
use super::oauth::tokens::AccessTokens;
use super::origin::{Origin, OriginPattern};
use super::origin_grant::{self, DEFAULT_METHODS, GrantMismatch, OriginGrant, RequestTarget};
use super::{headers, path};
use crate::grants::call_record::CallRecord;
use crate::grants::editor::GrantSuggestion;
use crate::grants::front::FrontRequest;
use crate::grants::grant::CallScope;
use crate::grants::network;
use crate::grants::network::host::Host;
use crate::grants::network::upstream_breaker::describe_pause;
use crate::model::limits::Traffic;
use crate::model::{Consent, DecisionKind, MountName, command, text};

/// The state of the grant `http` in one call.
pub struct HttpCallState {
    pub(super) mount: MountName,
    pub(super) record: CallRecord,
    pub(super) mount_state: Arc<HttpMountState>,
    /// The grants that a person consented to for this call.
    pub(super) consented_grants: Vec<Arc<OriginGrant>>,
    pub(super) traffic: Traffic,
    pub(super) deadline: Instant,
    /// Resolves when the latest request of the guest has been sent.
    pub(super) last_request: Option<oneshot::Receiver<()>>,
}

/// The least bytes that a guest can write into a body at once: the size of a write of common guest libraries.
const MIN_CHUNK_BYTES: usize = 4096;

/// The response, or the error for the guest.
type ResponseResult = Result<(Response<WasiBody>, ConnectionDriver), Error>;

impl HttpCallState {
    /// The state of a call of the mount.
    pub(in crate::grants) fn new(mount_state: &Arc<HttpMountState>, scope: &CallScope<'_>) -> Self {
        let consented = scope.consent.iter().filter(|consent| consent.grant == NAME);
        let consented = consented.filter_map(|consent| OriginPattern::parse(&consent.target).ok());
        let grant = |pattern| Arc::new(OriginGrant::consented(pattern, mount_state.network.as_deref()));
        Self {
            mount: scope.mount.clone(),
            record: scope.record.clone(),
            mount_state: Arc::clone(mount_state),
            consented_grants: consented.map(grant).collect(),
            traffic: scope.limits.traffic,
            deadline: scope.deadline,
            last_request: None,
        }
    }

    /// Records that a request was refused.
    pub(super) fn deny(&self, action: &str, cure: String) {
        self.record.add_decision(NAME, action, DecisionKind::Denied, || Some(cure));
    }

    /// Decides whether the request may be sent, and by which grant.
    fn decide(&mut self, request: &Request<WasiBody>) -> Result<AllowedRequest, Error> {
        let target = RequestTarget::read(request.method(), request.uri()).map_err(|why| {
            // Leave out the URI: it may contain data that the guest has read.
            self.deny("a request to a malformed URI", format!("nothing allows this: {why}"));
            Error::HttpRequestUriInvalid
        })?;
        let counted = self.record.traffic().count_request(&self.traffic);
        counted.map_err(|_| Error::ConnectionLimitReached)?;
        // Record only scheme and authority, for the same reason.
        let action = format!("{} {}", display_method(&target.method), target.origin);
        let mut closest: Option<(GrantMismatch, Arc<OriginGrant>)> = None;
        let mut found = match network::needs_grant() {
            true => None,
            false => Some(Arc::new(OriginGrant::consented(
                target.origin.clone().into(),
                self.mount_state.network.as_deref(),
            ))),
        };
        for grant in self.mount_state.grants.iter().chain(&self.consented_grants) {
            match grant.check_target(&target).and_then(|()| grant.check_headers(request.headers())) {
                Ok(()) => {
                    found = Some(Arc::clone(grant));
                    break;
                }
                Err(GrantMismatch::Origin) => {}
                Err(mismatch) if closest.as_ref().is_none_or(|(other, _)| mismatch > *other) => {
                    closest = Some((mismatch, Arc::clone(grant)));
                }
                Err(_) => {}
            }
        }
        let Some(grant) = found else {
            if closest.is_none() && allows_consent(&target.origin) {
                self.record.request_consent(Consent { grant: NAME.into(), target: target.origin.to_string() });
            }
            // A consent has no entry in the configuration, so no flag can extend it.
            let closest = closest.filter(|(_, grant)| !self.consented_grants.iter().any(|own| Arc::ptr_eq(own, grant)));
            self.deny(&action, self.cure(closest.as_ref(), &target));
            return Err(Error::HttpRequestDenied);
        };
        self.record.add_decision(NAME, &action, DecisionKind::Allowed, || None);
        let position = QueuePosition::after_last(&mut self.last_request);
        Ok(AllowedRequest {
            mount_state: Arc::clone(&self.mount_state),
            grant,
            target,
            traffic: self.traffic,
            deadline: self.deadline,
            position,
            record: self.record.clone(),
            bearer: None,
        })
    }

    /// The cure of a denial. `closest`: the grant that matches best, and why it does not match.
    fn cure(&self, closest: Option<&(GrantMismatch, Arc<OriginGrant>)>, target: &RequestTarget) -> String {
        let (mount, origin) = (self.mount.as_str(), target.origin.to_string());
        let name = target.method.as_str();
        if name.len() > MAX_METHOD_CHARS || origin_grant::parse_method(name).is_err() {
            let name = text::excerpt(name, MAX_METHOD_CHARS);
            return format!("nothing allows this: \"{name}\" is not a method that can be granted");
        }
        let method =
            |is_allowed: bool| if is_allowed { Vec::new() } else { vec!["--method".to_owned(), name.to_owned()] };
        let Some((mismatch, grant)) = closest else {
            let line = format!("http = [{{ origin = \"{origin}\" }}]");
            let flags = [vec!["--http".to_owned(), origin], method(DEFAULT_METHODS.contains(&name))].concat();
            return GrantSuggestion { line, flags, prerequisite: None }.cure(mount);
        };
        match mismatch {
            GrantMismatch::Query => return "nothing allows this: the host itself adds this query parameter".to_owned(),
            GrantMismatch::Override => {
                return "nothing allows this: this query parameter requests another method than the request has"
                    .to_owned();
            }
            GrantMismatch::Credential => {
                return format!(
                    "set  headers  or  allow-headers  in the grant of \"{}\" under [mounts.{mount}]: a provider may not send credentials of its own",
                    grant.pattern()
                );
            }
            GrantMismatch::Origin | GrantMismatch::Method | GrantMismatch::Path => {}
        }
        // Extend the existing grant: a new one would lack the headers that the host adds.
        let mut words = vec!["grant".to_owned(), mount.to_owned(), "--http".to_owned(), grant.pattern().to_string()];
        words.extend(method(grant.methods().contains(&target.method)));
        if !grant.paths().allow(&target.path) {
            let Some(glob) = path::glob_for(&target.path, MAX_PATH_CHARS) else {
                return "nothing allows this: servers disagree on the meaning of its path".to_owned();
            };
            words.extend(["--path".to_owned(), glob]);
        }
        format!("run: {}", command::line(&words))
    }
}

/// A method for display. Quotes unusual methods, so that people do not mistake them for other words.
fn display_method(method: &Method) -> String {
    let method = method.as_str();
    match origin_grant::parse_method(method) {
        Err(MethodError::Unknown(_)) => format!("{method:?}"),
        _ => method.to_owned(),
    }
}

/// The most characters of a method and of a path in a cure.
const MAX_METHOD_CHARS: usize = 40;
const MAX_PATH_CHARS: usize = 300;

/// True if a person may be asked for consent to `origin`: a name of the public internet, on the default port of its
/// scheme.
fn allows_consent(origin: &Origin) -> bool {
    const LOCAL: [&str; 8] = ["localhost", "local", "internal", "lan", "home", "home.arpa", "corp", "intranet"];
    let Host::Name(name) = &origin.host else { return false };
    let is_local =
        LOCAL.iter().any(|local| name.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    name.contains('.') && !is_local && origin.port == origin.scheme.default_port()
}

impl AllowedRequest {
    /// Sends the request, and records why it could not be sent.
    async fn run(
        mut self,
        request: Request<WasiBody>,
        options: RequestOptions,
        denials: ConnectDenials,
    ) -> ResponseResult {
        let origin = &self.target.origin.clone();
        if let Err(pause) = self.mount_state.upstreams.check(origin, Instant::now()) {
            let why = || Some(describe_pause(pause));
            denials.record.add_decision(NAME, &origin.to_string(), DecisionKind::Unavailable, why);
            return Err(Error::DestinationUnavailable);
        }
        let result = match self.mount_state.tokens_of(&self.grant).cloned() {
            None => exchange::run(&mut self, request, options).await,
            Some(tokens) => self.run_with_token(&tokens, request, options, &denials).await,
        };
        let is_reached = !matches!(&result, Err(ExchangeFailure { error, not_allowed: None }) if is_down(error));
        self.mount_state.upstreams.record_result(origin, is_reached, Instant::now());
        result.map_err(|ExchangeFailure { error, not_allowed }| {
            match not_allowed {
                Some(ConnectError::Prohibited(address)) => denials.deny_private_address(origin, &self.grant, address),
                Some(ConnectError::Own) => denials.deny_own_port(origin),
                _ => {}
            }
            error
        })
    }
}

impl AllowedRequest {
    /// Sends the request with an access token. If the upstream refuses the token, forgets it, and tries once more with
    /// another one, provided that the request changes nothing.
    async fn run_with_token(
        &mut self,
        tokens: &Arc<AccessTokens>,
        request: Request<WasiBody>,
        options: RequestOptions,
        denials: &ConnectDenials,
    ) -> Result<(Response<WasiBody>, ConnectionDriver), ExchangeFailure> {
        let refuse = |why: &AccessTokenError| ExchangeFailure {
            error: denials.deny_without_token(tokens, &self.grant, why),
            not_allowed: None,
        };
        let token = tokens.get(&denials.mount, self.deadline).await.map_err(|why| refuse(&why))?;
        let (repeatable, request) = RepeatableRequest::of(request);
        self.bearer = Some(token.header.clone());
        let first = exchange::run(self, request, options).await?;
        if first.0.status() != StatusCode::UNAUTHORIZED || !tokens.forget(&token) {
            return Ok(first);
        }
        let Some(request) = repeatable.and_then(RepeatableRequest::again) else { return Ok(first) };
        let Ok(next) = tokens.get(&denials.mount, self.deadline).await else { return Ok(first) };
        if next.header == token.header {
            return Ok(first);
        }
        // The first connection ends before the second one begins: the mount may have only one.
        drop(first);
        self.bearer = Some(next.header.clone());
        self.position = QueuePosition::after_last(&mut None);
        exchange::run(self, request, options).await
    }
}

/// True if the error means that the upstream is down, so that the next request will probably fail too.
fn is_down(error: &Error) -> bool {
    matches!(
        error,
        Error::DnsTimeout
            | Error::DnsError { .. }
            | Error::DestinationNotFound
            | Error::DestinationUnavailable
            | Error::DestinationIpUnroutable
            | Error::ConnectionRefused
            | Error::ConnectionTerminated
            | Error::ConnectionTimeout
            | Error::HttpResponseTimeout
            | Error::HttpResponseIncomplete
    )
}

/// Records denials that are found after the request was allowed, while connecting.
struct ConnectDenials {
    mount: MountName,
    record: CallRecord,
}

impl ConnectDenials {
    fn deny_private_address(&self, origin: &Origin, grant: &OriginGrant, address: IpAddr) {
        self.record.add_decision(NAME, &format!("connect {origin}"), DecisionKind::Denied, || {
            let (grant, address) = (grant.pattern().to_string(), address.to_string());
            let line = command::line(["grant", self.mount.as_str(), "--http", &grant, "--network", &address]);
            Some(format!("its address is not public; to allow it, run: {line}"))
        });
    }

    /// Records why there is no access token. Returns the error for the guest.
    fn deny_without_token(&self, tokens: &AccessTokens, grant: &OriginGrant, why: &AccessTokenError) -> Error {
        let (verdict, error) = match why.is_temporary() {
            true => (DecisionKind::Unavailable, Error::DestinationUnavailable),
            false => (DecisionKind::Denied, Error::HttpRequestDenied),
        };
        let target = format!("a token of {} for {}", tokens.settings().server(), grant.pattern());
        self.record
            .add_decision(NAME, &target, verdict, || Some(why.cure(self.mount.as_str(), &grant.pattern().to_string())));
        error
    }

    fn deny_own_port(&self, origin: &Origin) {
        self.record.add_decision(NAME, &format!("connect {origin}"), DecisionKind::Denied, || {
            Some(format!(
                "belljar itself listens on this address; to allow it, set  own-ports = true  in the grant of \"{origin}\" under [mounts.{}]",
                self.mount
            ))
        });
    }
}

impl WasiHttpHooks for HttpCallState {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        let hidden = Arc::clone(&self.mount_state.hidden_headers);
        Arc::new(move |name| {
            DEFAULT_FORBIDDEN_HEADERS.contains(name)
                || headers::is_forbidden(name)
                || headers::carries_credential(hidden.iter().any(|own| headers::is_same(own, name)))
        })
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: ConnectionDriver,
    ) -> Box<dyn Future<Output = ResponseResult> + Send> {
        if let Some(front) = self.record.front() {
            // Open the stream now: the front decides on the requests in the order of their streams.
            let opening = front.open(FrontRequest::Exchange);
            let (record, options) = (self.record.clone(), options.unwrap_or_default());
            return Box::new(front_exchange::run(opening, request, options, record, self.traffic));
        }
        match self.decide(&request) {
            Err(error) => Box::new(std::future::ready(Err(error))),
            Ok(allowed) => {
                let denials = ConnectDenials { mount: self.mount.clone(), record: self.record.clone() };
                Box::new(allowed.run(request, options.unwrap_or_default(), denials))
            }
        }
    }

    // The buffer of a body is charged to the call, so it need not exceed the upload limit.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        let most = usize::try_from(self.traffic.upload).unwrap_or(usize::MAX);
        most.clamp(MIN_CHUNK_BYTES, DEFAULT_OUTGOING_BODY_CHUNK_SIZE)
    }

    // The default implementations would write text of the upstream into the log.

    fn p2_error_from_hyper(&mut self, _: &hyper::Error) -> ErrorCode {
        ErrorCode::HttpProtocolError
    }

    fn p2_error_from_connect(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::DestinationUnavailable
    }

    fn p2_error_from_tls(&mut self, _: &std::io::Error) -> ErrorCode {
        ErrorCode::TlsProtocolError
    }
}
