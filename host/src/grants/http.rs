//! `http`: requests to the origins that the operator named, and to nobody else.
//!
//! The guest hands over a whole request; it is read once, judged in that reading, and sent in it, over a connection of its
//! own to an address that was judged as well. What the host adds (credentials) is added after that, and masked in whatever
//! comes back. Redirects are answers: the guest may follow one by another request, which is judged in turn.

pub mod address;
pub mod origin;
pub mod path;
pub mod rule;

mod dial;
mod edit;
mod exchange;
mod heads;
mod sockets;
mod upstreams;

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use ::http::{HeaderName, Method, Request, Response};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use toml_edit::TableLike;
use wasmtime::component::Linker;
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi_http::p2::DEFAULT_OUTGOING_BODY_CHUNK_SIZE;
use wasmtime_wasi_http::p2::bindings::http::types::ErrorCode;
use wasmtime_wasi_http::{
    DEFAULT_FORBIDDEN_HEADERS, Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpHooks,
};

use super::edit::{Flag, Gift, Here};
use super::needs::{Need, Needed};
use super::secrets::Secret;
use super::{Ambient, Grant, Scope, SharedTrail, Typed, View};
use crate::model::error::Limit;
use crate::model::limits::Traffic;
use crate::model::{Consent, Guard, MountName, Verdict, command, text};
use dial::{Resolver, Unreached};
use exchange::{Failed, Plan, Turn, Used};
use heads::CREDENTIALS;
use origin::{Host, Origin, Pattern};
use rule::{Rule, Target, Unfit, Written};
use upstreams::Upstreams;

pub use dial::{Network, Settings};

/// Bytes that one write into a body may always have: what a guest's library writes at once.
const LEAST_CHUNK: usize = 4096;

/// The kind.
pub struct Http;

/// What a mount holds.
pub struct Held {
    rules: Vec<Arc<Rule>>,
    network: Option<Arc<Network>>,
    resolver: Option<Resolver>,
    /// Requests of the mount that are on their way at once.
    flights: OnceLock<Arc<Semaphore>>,
    upstreams: Upstreams,
    /// Headers that a guest can neither set nor read.
    hidden: Arc<[HeaderName]>,
}

impl Held {
    fn flights(&self, most: usize) -> Arc<Semaphore> {
        let most = if Guard::Traffic.is_on() { most } else { Semaphore::MAX_PERMITS };
        Arc::clone(self.flights.get_or_init(|| Arc::new(Semaphore::new(most))))
    }
}

/// What a call holds.
pub struct Call {
    mount: MountName,
    trail: SharedTrail,
    held: Arc<Held>,
    /// What a person allowed for this call alone.
    consented: Vec<Arc<Rule>>,
    traffic: Traffic,
    deadline: Instant,
    /// Made for the first request: most calls send none.
    used: Option<Arc<Used>>,
    /// Told when the last request that the guest sent has set out.
    last: Option<oneshot::Receiver<()>>,
}

/// What `wasi:http` waits for after a request was sent: the exchange's own work.
type Io = Box<dyn Future<Output = Result<(), Error>> + Send>;

/// An answer, or how there came to be none.
type Answered = Result<(Response<WasiBody>, Io), Error>;

impl Grant for Http {
    const NAME: &'static str = "http";
    const IMPORTS: &'static [&'static str] = &["wasi:http/", "wasi:sockets/"];
    const EXAMPLE: &'static str = "http = [{ origin = \"https://api.example.com\" }]";
    const GIVE: Flag = edit::GIVE;
    const MORE: &'static [Flag] = edit::MORE;
    const TAKE: &'static str = "ORIGIN";
    const NEED: Needed = Needed { key: "origin", check: check_origin, is_free: true, has_any: false, has_value: false };
    type Config = Vec<Written>;
    type Mount = Arc<Held>;
    type Call = Call;

    fn link<T: View>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        sockets::link(linker)
    }

    fn configure(config: &Vec<Written>, ambient: &Ambient) -> Result<Arc<Held>, String> {
        let network = ambient.network.as_ref();
        let read = |written| Rule::new(written, &ambient.secrets, network.map(Arc::as_ref)).map(Arc::new);
        let rules: Vec<Arc<Rule>> = config.iter().map(read).collect::<Result<_, _>>()?;
        let allowed = |name: &HeaderName| rules.iter().any(|rule| rule.allowed_headers().contains(name));
        // Others that the host adds replace what the guest set, and are no secret in an answer.
        let secret = rules.iter().flat_map(|rule| rule.headers()).filter(|(_, value)| value.is_sensitive());
        let added = secret.map(|(name, _)| name.clone());
        let hidden = CREDENTIALS.into_iter().filter(|name| !allowed(name)).chain(added).collect();
        let resolver = network.map(|network| network.resolver()).transpose()?;
        let network = network.cloned();
        Ok(Arc::new(Held {
            rules,
            network,
            resolver,
            flights: OnceLock::new(),
            upstreams: Upstreams::default(),
            hidden,
        }))
    }

    fn ports(config: &Vec<Written>) -> Vec<u16> {
        config.iter().filter_map(|written| Some(Pattern::parse(&written.origin).ok()?.port())).collect()
    }

    fn is_held(mount: &Arc<Held>) -> bool {
        !mount.rules.is_empty()
    }

    fn describe(config: &Vec<Written>) -> Vec<String> {
        config.iter().map(Written::describe).collect()
    }

    fn in_words(config: &Vec<Written>) -> Vec<String> {
        config.iter().map(edit::in_words).collect()
    }

    fn meets(config: &Vec<Written>, need: &Need) -> bool {
        let Some(wanted) = &need.what else { return !config.is_empty() };
        let is_it = |written: &Written| Pattern::parse(&written.origin).is_ok_and(|own| own.to_string() == *wanted);
        config.iter().any(is_it)
    }

    fn typed(_: &str, need: Option<&Need>) -> Option<Typed> {
        let origin = match need {
            Some(need) => need.what.as_deref()?,
            None => "https://api.example.com",
        };
        Some(Typed {
            line: format!("http = [{{ origin = \"{origin}\" }}]"),
            flags: vec!["--http".to_owned(), origin.to_owned()],
            before: None,
        })
    }

    fn give(mount: &mut dyn TableLike, gift: &Gift, _: &Here) -> Result<(), String> {
        edit::give(mount, gift)
    }

    fn keep(mount: &mut dyn TableLike, origin: &str) -> Result<(), String> {
        edit::give(mount, &Gift { what: origin.to_owned(), more: Vec::new() })
    }

    fn take(mount: &mut dyn TableLike, what: &str) -> Result<(), String> {
        edit::take(mount, what)
    }

    fn advise(gift: &Gift) -> Vec<String> {
        edit::advise(gift)
    }

    fn warnings(mount: &Arc<Held>) -> Vec<String> {
        mount.rules.iter().flat_map(|rule| rule.warnings()).collect()
    }

    fn secrets(mount: &Arc<Held>) -> Vec<Arc<Secret>> {
        mount.rules.iter().flat_map(|rule| rule.secrets()).cloned().collect()
    }

    fn open(mount: &Arc<Held>, _: &mut WasiCtxBuilder, scope: &Scope<'_>) -> Call {
        let consented = scope.consent.iter().filter(|consent| consent.grant == Self::NAME);
        let consented = consented.filter_map(|consent| Pattern::parse(&consent.what).ok());
        let rule = |pattern| Arc::new(Rule::consented(pattern, mount.network.as_deref()));
        Call {
            mount: scope.mount.clone(),
            trail: scope.trail.clone(),
            held: Arc::clone(mount),
            consented: consented.map(rule).collect(),
            traffic: scope.limits.traffic,
            deadline: scope.deadline,
            used: None,
            last: None,
        }
    }
}

impl Call {
    /// The limit that requests of this call reached, if they did.
    pub fn refused(&self) -> Option<Limit> {
        self.used.as_ref()?.refused()
    }

    fn deny(&self, what: &str, cure: String) {
        self.trail.add(Http::NAME, what, Verdict::Denied, || Some(cure));
    }

    fn refuse_socket(&self, what: &str) {
        self.deny(what, "nothing allows this: providers reach the network by HTTP only".to_owned());
    }

    /// Whether the request may be sent; as what, and by which grant.
    fn decide(&mut self, request: &Request<WasiBody>) -> Result<Plan, Error> {
        let target = Target::read(request.method(), request.uri()).map_err(|why| {
            // Not the guest's own words: they may carry what it read.
            self.deny("a request to a malformed URI", format!("nothing allows this: {why}"));
            Error::HttpRequestUriInvalid
        })?;
        let used = Arc::clone(self.used.get_or_insert_default());
        used.request(&self.traffic)?;
        // Scheme and authority only, for the same reason.
        let what = format!("{} {}", shown(&target.method), target.origin);
        let mut closest: Option<(Unfit, Arc<Rule>)> = None;
        let mut found = match Guard::Egress.is_on() {
            true => None,
            false => Some(Arc::new(Rule::consented(target.origin.clone().into(), self.held.network.as_deref()))),
        };
        for rule in self.held.rules.iter().chain(&self.consented) {
            match rule.fits(&target).and_then(|()| rule.carries(request.headers())) {
                Ok(()) => {
                    found = Some(Arc::clone(rule));
                    break;
                }
                Err(Unfit::Origin) => {}
                Err(unfit) if closest.as_ref().is_none_or(|(other, _)| unfit > *other) => {
                    closest = Some((unfit, Arc::clone(rule)));
                }
                Err(_) => {}
            }
        }
        let Some(rule) = found else {
            if closest.is_none() && may_be_asked(&target.origin) {
                self.trail.ask(Consent { grant: Http::NAME, what: target.origin.to_string() });
            }
            // What a person allows for a call is not written down, so that nothing can be added to it.
            let closest = closest.filter(|(_, rule)| !self.consented.iter().any(|own| Arc::ptr_eq(own, rule)));
            self.deny(&what, self.cure(closest.as_ref(), &target));
            return Err(Error::HttpRequestDenied);
        };
        self.trail.add(Http::NAME, &what, Verdict::Allowed, || None);
        let turn = Turn::behind(&mut self.last);
        Ok(Plan {
            held: Arc::clone(&self.held),
            rule,
            target,
            used,
            traffic: self.traffic,
            deadline: self.deadline,
            turn,
            trail: self.trail.clone(),
        })
    }

    /// What the operator types to allow it. `closest`: the grant that is nearly for it, and why it is not.
    fn cure(&self, closest: Option<&(Unfit, Arc<Rule>)>, target: &Target) -> String {
        let (mount, origin) = (self.mount.as_str(), target.origin.to_string());
        let name = target.method.as_str();
        if name.len() > METHOD || rule::method(name).is_err() {
            let name = text::excerpt(name, METHOD);
            return format!("nothing allows this: \"{name}\" is no method that can be granted");
        }
        let method =
            |is_allowed: bool| if is_allowed { Vec::new() } else { vec!["--method".to_owned(), name.to_owned()] };
        let mut words = vec!["grant".to_owned(), mount.to_owned(), "--http".to_owned()];
        let Some((unfit, rule)) = closest else {
            words.push(origin.clone());
            words.extend(method(edit::METHODS.contains(&name)));
            return format!(
                "add  http = [{{ origin = \"{origin}\" }}]  to [mounts.{mount}], or run: {}",
                command::line(&words)
            );
        };
        match unfit {
            Unfit::Query => return "nothing allows this: the host adds this parameter of the query itself".to_owned(),
            Unfit::Override => {
                return "nothing allows this: this parameter of the query asks for another method than the one that was judged"
                    .to_owned();
            }
            Unfit::Credential => {
                return format!(
                    "set  headers  or  allow-headers  in the grant of \"{}\" under [mounts.{mount}]: a provider may not send credentials of its own",
                    rule.pattern()
                );
            }
            Unfit::Origin | Unfit::Method | Unfit::Path => {}
        }
        // To the grant that is there: another one would go without what the host adds.
        words.push(rule.pattern().to_string());
        words.extend(method(rule.methods().contains(&target.method)));
        if !rule.paths().allow(&target.path) {
            let Some(glob) = path::glob_for(&target.path, PATH) else {
                return "nothing allows this: its path is one that servers read in more than one way".to_owned();
            };
            words.extend(["--path".to_owned(), glob]);
        }
        format!("run: {}", command::line(&words))
    }
}

/// A method for people: one that is made to be mistaken for other words is quoted.
fn shown(method: &Method) -> String {
    let method = method.as_str();
    match rule::method(method) {
        Err(_) if !matches!(method, "CONNECT" | "TRACE") => format!("{method:?}"),
        _ => method.to_owned(),
    }
}

/// Characters of a method and of a path that stand in a cure.
const METHOD: usize = 40;
const PATH: usize = 300;

/// An origin that a provider may declare, in its one spelling.
fn check_origin(origin: &str) -> Result<String, String> {
    let pattern = Pattern::parse(origin)?;
    if pattern.is_wide() {
        return Err("expected one origin, such as \"https://api.example\"".to_owned());
    }
    Ok(pattern.to_string())
}

/// Whether a person may be asked about `origin`: it is a name of the public internet, on one of its own ports.
fn may_be_asked(origin: &Origin) -> bool {
    const LOCAL: [&str; 8] = ["localhost", "local", "internal", "lan", "home", "home.arpa", "corp", "intranet"];
    let Host::Name(name) = &origin.host else { return false };
    let is_local =
        LOCAL.iter().any(|local| name.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')));
    name.contains('.') && !is_local && origin.port == origin.scheme.default_port()
}

impl Plan {
    /// Sends it, and tells what kept it from being sent.
    async fn run(mut self, request: Request<WasiBody>, options: RequestOptions, call: Told) -> Answered {
        let origin = &self.target.origin.clone();
        if let Err((times, pause)) = self.held.upstreams.check(origin, Instant::now()) {
            let pause = pause.as_millis().div_ceil(1000);
            call.trail.add(Http::NAME, &origin.to_string(), Verdict::Unavailable, || {
                Some(format!("it failed {times} times in a row, and is asked again in {pause} s"))
            });
            return Err(Error::DestinationUnavailable);
        }
        let outcome = exchange::run(&mut self, request, options).await;
        let is_reached = !matches!(&outcome, Err(Failed { error, unreached: None }) if is_down(error));
        self.held.upstreams.ended(origin, is_reached, Instant::now());
        outcome.map_err(|Failed { error, unreached }| {
            match unreached {
                Some(Unreached::Prohibited(address)) => call.prohibited(origin, &self.rule, address),
                Some(Unreached::Own) => call.own(origin),
                _ => {}
            }
            error
        })
    }
}

/// Whether an upstream does not answer at all, so that the next request is likely to fail in the same way.
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

/// Where a request that is on its way notes what it was refused.
struct Told {
    mount: MountName,
    trail: SharedTrail,
}

impl Told {
    fn prohibited(&self, origin: &Origin, rule: &Rule, address: IpAddr) {
        self.trail.add(Http::NAME, &format!("connect {origin}"), Verdict::Denied, || {
            let (rule, address) = (rule.pattern().to_string(), address.to_string());
            let line = command::line(["grant", self.mount.as_str(), "--http", &rule, "--network", &address]);
            Some(format!("its address is not one of the public internet; to allow it, run: {line}"))
        });
    }

    fn own(&self, origin: &Origin) {
        self.trail.add(Http::NAME, &format!("connect {origin}"), Verdict::Denied, || {
            Some(format!(
                "belljar itself listens there; to allow it all the same, set  own-ports = true  in the grant of \"{origin}\" under [mounts.{}]",
                self.mount
            ))
        });
    }
}

impl WasiHttpHooks for Call {
    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        let hidden = Arc::clone(&self.held.hidden);
        Arc::new(move |name| {
            DEFAULT_FORBIDDEN_HEADERS.contains(name)
                || heads::is_refused(name)
                || (Guard::Credential.is_on() && hidden.iter().any(|own| heads::is_same(own, name)))
        })
    }

    fn send_request(
        &mut self,
        request: Request<WasiBody>,
        options: Option<RequestOptions>,
        _: Io,
    ) -> Box<dyn Future<Output = Answered> + Send> {
        match self.decide(&request) {
            Err(error) => Box::new(std::future::ready(Err(error))),
            Ok(plan) => {
                let told = Told { mount: self.mount.clone(), trail: self.trail.clone() };
                Box::new(plan.run(request, options.unwrap_or_default(), told))
            }
        }
    }

    // What waits in a body is charged to the call; beyond what the call may send, nothing needs to wait.
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        let most = usize::try_from(self.traffic.upload).unwrap_or(usize::MAX);
        most.clamp(LEAST_CHUNK, DEFAULT_OUTGOING_BODY_CHUNK_SIZE)
    }

    // The library's own would write an upstream's words into the log.

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
