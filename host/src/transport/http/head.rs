//! The door: checks the head of each HTTP request before anything of its body is parsed for its meaning. Both the fast
//! path and rmcp take a [`CheckedHead`], so no request reaches them [unchecked](Door::check). New rules about heads
//! belong here.
//!
//! | step | refused with |
//! |---|---|
//! | the connection comes from the proxy, if there is one | 403 |
//! | Host and Origin | 400, 403 |
//! | preflights of the operator's pages, and the metadata for tokens, are answered here | |
//! | the path | 404 |
//! | the credential, if the configuration has `[auth]` | 400, 401, 429, 503 |
//! | the revision | 400 |

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use data_encoding::HEXLOWER;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use rmcp::model::{ErrorData, ProtocolVersion};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::accepted_credential::AcceptedCredential;
use super::bearer::{self, ChallengeError};
use super::client_address::ProxyNetworks;
use super::cors::Pages;
use super::failure_limit::{FailureLimit, counted};
use super::front_door::{Authentication, FrontDoor};
use super::host_names::HostNames;
use super::metadata;
use super::names::{PATH, REVISION, SESSION};
use super::refusal_log::{RefusalLog, Unusable};
use super::reply::{refuse_with, text as plain_text};
use crate::auth::AuthError;
use crate::config::serve::PublicUrl;
use crate::limits::keyed_slots::KeyedSlots;
use crate::mcp::{fault, identity};
use crate::model::Guard;
use crate::model::bounds::MAX_CHECKS_OF_ADDRESS;
use crate::policy::{Evidence, Principal, PrincipalKind, authenticate};

/// The revision of a request without the revision header.
const DEFAULT_REVISION: &str = "2025-03-26";

/// Seconds after which a client may try again if its credential cannot be checked now.
const UNAVAILABLE_FOR: HeaderValue = HeaderValue::from_static("5");

/// How long a request waits until other unknown credentials of its address are checked.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Bytes of the SHA-256 of a refused credential that are recorded.
const SHOWN_DIGEST: usize = 4;

/// Checks the heads of all requests of an endpoint.
pub(super) struct Door {
    host_names: HostNames,
    pages: Pages,
    proxies: ProxyNetworks,
    url: Option<PublicUrl>,
    authentication: Option<Authentication>,
    failures: FailureLimit,
    /// Unknown credentials that are checked. Checking an opaque token asks its issuer, and only a few questions run at once:
    /// one client with many random tokens would keep all others waiting.
    checks: KeyedSlots<IpAddr>,
    refusals: RefusalLog,
}

/// The head of a request that passed all checks. Only [`Door::check`] makes one.
pub(super) struct CheckedHead {
    parts: Parts,
    principal: Principal,
    address: Option<IpAddr>,
}

/// The answer to a request that does not get past the door.
pub(super) struct DoorAnswer {
    /// The response.
    pub(super) response: Response<Body>,
    /// The failed authentication to record, if the answer is a refusal of one.
    pub(super) refusal: Option<RefusedAuthentication>,
    /// True if the answer refuses a credential: [`DoorAnswer::refusal`] is its record, or it is counted for a later one.
    pub(super) is_authentication: bool,
}

/// A failed authentication.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RefusedAuthentication {
    /// The address of the client.
    pub(super) address: IpAddr,
    /// The reason.
    pub(super) why: String,
    /// The first digits of the SHA-256 of the credential, if there is one.
    pub(super) credential: Option<String>,
    /// The number of failed authentications that the line of the record stands for. At least 1.
    pub(super) count: u32,
}

impl From<Response<Body>> for DoorAnswer {
    fn from(response: Response<Body>) -> Self {
        Self { response, refusal: None, is_authentication: false }
    }
}

impl CheckedHead {
    /// The head.
    pub(super) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The principal of the request.
    pub(super) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The address of the client, if it belongs into the record.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// Makes the request one of a session that does not exist.
    pub(super) fn forget_session(&mut self) {
        // No session has this id: rmcp's ids are UUIDs.
        self.parts.headers.insert(&SESSION, HeaderValue::from_static("unknown"));
    }

    /// The head, by value.
    pub(super) fn into_parts(self) -> Parts {
        self.parts
    }
}

impl Door {
    /// The door of an endpoint on `address`.
    pub(super) fn new(address: SocketAddr, front: FrontDoor) -> Self {
        let FrontDoor { bounds: _, tls: _, serve, authentication } = front;
        Self {
            host_names: HostNames::new(address, &serve),
            pages: Pages::new(&serve.origins),
            proxies: ProxyNetworks::new(serve.trusted),
            url: serve.url,
            authentication,
            failures: FailureLimit::default(),
            checks: KeyedSlots::new(MAX_CHECKS_OF_ADDRESS.get()),
            refusals: RefusalLog::default(),
        }
    }

    /// The pages that may use the endpoint.
    pub(super) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Checks the head of a request that came over a connection from `peer`.
    ///
    /// # Errors
    /// The answer to a request that is refused, or that concerns the door itself.
    pub(super) async fn check(&self, parts: Parts, peer: IpAddr) -> Result<CheckedHead, Box<DoorAnswer>> {
        let refuse = |(status, why): (StatusCode, String)| Box::new(DoorAnswer::from(plain_text(status, &why)));
        let address = self.proxies.client(peer, &parts.headers);
        let address = address.map_err(|why| {
            let mut answer = refuse((StatusCode::FORBIDDEN, format!("{why}\n")));
            answer.response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            answer
        })?;
        let is_metadata = metadata::is_metadata(parts.uri.path(), self.url.as_ref());
        let has_any_origin = is_metadata || self.pages.origin(&parts.headers).is_some();
        self.host_names.check(&parts, has_any_origin).map_err(refuse)?;
        if is_metadata {
            let answer = metadata::answer(&parts, self.url.as_ref(), self.authentication.as_ref());
            return Err(Box::new(answer.into()));
        }
        if parts.uri.path() != PATH {
            return Err(refuse((StatusCode::NOT_FOUND, format!("there is nothing here; MCP is at {PATH}\n"))));
        }
        if let Some(preflight) = self.pages.preflight(&parts) {
            return Err(Box::new(preflight.into()));
        }
        let principal = match &self.authentication {
            Some(authentication) if Guard::Authentication.is_on() => {
                self.authenticate(authentication, &parts, address).await.map_err(Box::new)?
            }
            _ => authenticate(Evidence::Loopback),
        };
        check_revision(&parts.headers).map_err(|response| Box::new(DoorAnswer::from(*response)))?;
        Ok(CheckedHead { parts, principal, address: self.records_addresses().then_some(address) })
    }

    /// Counts a request that was refused for another reason than its credential. Returns how many its line of the record
    /// stands for. `None`: it gets no line.
    pub(super) fn count_refused(&self, address: IpAddr) -> Option<u32> {
        self.refusals.unusable(address, Unusable::Malformed, Instant::now())
    }

    /// The refused requests that no line of the record stands for yet. Removes them.
    pub(super) fn take_unwritten(&self) -> u32 {
        self.refusals.take_unwritten()
    }

    /// The address of the client, if it belongs into the record.
    pub(super) fn recorded_address(&self, peer: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        self.records_addresses().then(|| self.proxies.client(peer, headers).ok()).flatten()
    }

    /// True if the record has the addresses of clients.
    fn records_addresses(&self) -> bool {
        self.authentication.is_some() || self.proxies.has_proxy()
    }

    /// The credential of a request that passed the checks. `None` if it needed none.
    pub(super) fn credential(&self, head: &CheckedHead) -> Option<AcceptedCredential> {
        let has_credential = matches!(head.principal.kind(), PrincipalKind::Key | PrincipalKind::Token);
        let by = self.authentication.as_ref().filter(|_| has_credential)?;
        let credential = bearer::credential(&head.parts).ok()??;
        Some(AcceptedCredential::new(&by.credentials, credential, &head.principal))
    }

    /// The principal whose credential the request has.
    async fn authenticate(&self, by: &Authentication, head: &Parts, address: IpAddr) -> Result<Principal, DoorAnswer> {
        let credential = match bearer::credential(head) {
            Ok(Some(credential)) => credential,
            Ok(None) => {
                let why = "expected a key or token in the header \"Authorization: Bearer\"".to_owned();
                return Err(self.refuse_malformed(by, address, (StatusCode::UNAUTHORIZED, None), why));
            }
            Err(malformed) => {
                let why = malformed.to_string();
                let error = ChallengeError { code: "invalid_request", description: why.clone() };
                return Err(self.refuse_malformed(by, address, (StatusCode::BAD_REQUEST, Some(&error)), why));
            }
        };
        if let Some(principal) = by.credentials.find_known(credential, SystemTime::now()) {
            return Ok(principal);
        }
        let was_accepted = self.failures.was_accepted(credential);
        let is_closed = || self.failures.closed_for(address, Instant::now()).filter(|_| !was_accepted);
        let closed = is_closed();
        let slot = if closed.is_none() { self.checks.enter(counted(address), MAX_WAIT).await } else { None };
        // The address may have been closed while the request waited.
        if let Some(wait) = closed.or_else(is_closed) {
            self.refusals.closed(address, Instant::now());
            return Err(DoorAnswer { is_authentication: true, ..too_many(wait).into() });
        }
        let checked = match slot {
            Some(_) => by.credentials.check(credential, SystemTime::now()).await,
            None => Err(AuthError::Unavailable),
        };
        let why = match checked {
            Ok(principal) => {
                self.failures.accept(credential);
                return Ok(principal);
            }
            Err(AuthError::Unavailable) => {
                let error = fault::unavailable(AuthError::Unavailable.to_string());
                let mut response = refuse_with(StatusCode::SERVICE_UNAVAILABLE, error, None);
                response.headers_mut().insert(header::RETRY_AFTER, UNAVAILABLE_FOR);
                return Err(response.into());
            }
            Err(AuthError::Lapsed(why)) => why,
            Err(AuthError::Invalid(why)) => {
                self.failures.refuse(address, credential, Instant::now());
                why
            }
        };
        let error = ChallengeError { code: "invalid_token", description: why.to_owned() };
        let refusal = self.refusals.refused(address, Instant::now()).map(|count| RefusedAuthentication {
            address,
            why: why.to_owned(),
            credential: Some(digest(credential)),
            count,
        });
        let response = self.refusal(StatusCode::UNAUTHORIZED, by, Some(&error), why.to_owned());
        Err(DoorAnswer { response, refusal, is_authentication: true })
    }

    /// Refuses a request without a well-formed credential. Nothing was guessed, so it is no failure of its address.
    fn refuse_malformed(
        &self,
        by: &Authentication,
        address: IpAddr,
        (status, error): (StatusCode, Option<&ChallengeError>),
        why: String,
    ) -> DoorAnswer {
        let unusable = if error.is_some() { Unusable::Malformed } else { Unusable::Missing };
        let count = self.refusals.unusable(address, unusable, Instant::now());
        let refusal = count.map(|count| RefusedAuthentication { address, why: why.clone(), credential: None, count });
        DoorAnswer { response: self.refusal(status, by, error, why), refusal, is_authentication: true }
    }

    /// The response to a request without a valid credential.
    fn refusal(
        &self,
        status: StatusCode,
        by: &Authentication,
        error: Option<&ChallengeError>,
        why: String,
    ) -> Response<Body> {
        let advertised = by.advertised.load();
        let metadata = self.metadata_url(by);
        let challenge = bearer::challenge(error, metadata.as_deref(), &advertised.scopes());
        bearer::refusal(status, fault::unauthenticated(why), challenge)
    }

    /// The URL of the metadata for tokens, if any is served.
    fn metadata_url(&self, by: &Authentication) -> Option<String> {
        let url = self.url.as_ref().filter(|_| !by.advertised.load().issuers.is_empty())?;
        Some(url.metadata_url())
    }

    /// Makes `response` that of a request whose credential lacks these scopes (RFC 6750, section 3.1).
    pub(super) fn demand_scopes(&self, response: &mut Response<Body>, scopes: &[String]) {
        let Some(by) = &self.authentication else { return };
        let description = "the credential lacks a scope that this request needs".to_owned();
        let error = ChallengeError { code: "insufficient_scope", description };
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let challenge = bearer::challenge(Some(&error), self.metadata_url(by).as_deref(), &scopes);
        *response.status_mut() = StatusCode::FORBIDDEN;
        bearer::add_challenge(response, challenge);
    }
}

/// The first digits of the SHA-256 of a credential.
fn digest(credential: &str) -> String {
    let digest = Sha256::digest(credential.as_bytes());
    HEXLOWER.encode(digest.get(..SHOWN_DIGEST).unwrap_or_default())
}

/// The response to a client whose address failed too often.
fn too_many(wait: Duration) -> Response<Body> {
    // Rounded up: a client that comes earlier is refused again.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let why = format!("too many requests of this address had no valid credential; try again in {seconds} s");
    let mut response = refuse_with(StatusCode::TOO_MANY_REQUESTS, fault::busy(&why), None);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// Refuses a revision that rmcp supports and belljar does not. rmcp refuses unknown revisions, with the id of the
/// request.
///
/// In a session, the value 2025-03-26 is accepted. The session has a negotiated revision, and some clients send the
/// value that an absent header means (2025-11-25, "Protocol Version Header").
fn check_revision(headers: &HeaderMap) -> Result<(), Box<Response<Body>>> {
    let Some(given) =
        headers.get(&REVISION).filter(|given| *given != DEFAULT_REVISION || !headers.contains_key(&SESSION))
    else {
        return Ok(());
    };
    let own = identity::revisions();
    let is = |revision: &&ProtocolVersion| revision.as_str().as_bytes() == given.as_bytes();
    match ProtocolVersion::KNOWN_VERSIONS.iter().find(is) {
        Some(known) if !own.contains(known) => Err(Box::new(refuse_with(
            StatusCode::BAD_REQUEST,
            ErrorData::unsupported_protocol_version(known.clone(), &own),
            None,
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
