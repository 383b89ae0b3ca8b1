//! Serves until a signal, or until the client of standard input leaves.

use std::io::IsTerminal;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::os::unix::net::UnixListener;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::admin::{AdminEndpoint, AdminEndpointError, StopNotice};
use super::failure::Failure;
use super::front_door::{LiveAuthentication, front_door};
use super::key_follower::KeyFollower;
use super::keys::{Keys, SharedCode};
use super::launcher::Launcher;
use super::listening::{check_address, listen};
use super::location::LocationArgs;
use super::pins::Pinning;
use super::privileged_helper::PrivilegedHelper;
use super::reload::{self, ReloadContext};
use super::replicas::ReplicaFollower;
use super::startup::{self, StartedHost, WallAccess};
use super::tls_follower::TlsFollower;
use super::trace_exporter::TraceExporter;
use super::{configuration, invocation, landlock, log, record, replicas};
use crate::catalog::loader::LandlockScope;
use crate::config::{Audit, Config};
use crate::gateway::Gateway;
use crate::gateway::consent::ConsentWriter;
use crate::grants::OutsideOpener;
use crate::limits::processors;
use crate::mcp::Handler;
use crate::mcp::cursor::Cursors;
use crate::policy::{Evidence, authenticate};
use crate::store::SharedStore;
use crate::telemetry::Sink;
use crate::transport;
use crate::transport::http::FrontDoor;

/// How long the threads of the runtime may take to end at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(300);

/// How long the writing of the last audit records may take at shutdown.
const RECORD_TIMEOUT: Duration = Duration::from_secs(1);

/// The clients that a belljar serves.
pub(crate) enum Clients {
    /// The client of standard input and output, or those of HTTP if the configuration says so.
    Own,
    /// The clients of this address.
    Http(SocketAddr),
    /// The clients of the local socket, and those of HTTP if the configuration says so.
    Shared(UnixListener),
}

pub(crate) fn run(at: &LocationArgs, dev: bool, clients: Clients) -> Result<ExitCode, Failure> {
    log::start("info,rmcp=error");
    let (http, local) = match clients {
        Clients::Own => (None, None),
        Clients::Http(address) => (Some(address), None),
        Clients::Shared(listener) => (None, Some(listener)),
    };
    let followed = reload::followed_files(at, None)?;
    let config = configuration::file(at)?;
    let followed = [followed, reload::followed_files(at, Some(&config))?].concat();
    let http = http.or(config.serve.http);
    if let Some(address) = &http {
        check_address(address, Some(&config))?;
    }
    let tls = config.serve.tls.as_ref().filter(|_| http.is_some()).map(TlsFollower::load).transpose()?;
    // Listens before anything is loaded, so that an address in use is reported at once. The second wall forbids
    // listening.
    let listener = http.map(listen).transpose()?;
    let admin = match AdminEndpoint::bind(&config.admin) {
        // Each client of standard input has a belljar of its own. Only one of them can have the endpoint.
        Err(AdminEndpointError::Listen(error)) if listener.is_none() && local.is_none() => {
            tracing::warn!("{error}; this belljar goes on without the endpoint of [admin]");
            None
        }
        bound => bound?,
    };
    // No provider reaches them.
    let listeners = listener.iter().chain(admin.iter().flat_map(AdminEndpoint::listeners));
    let own = listeners.map(StdListener::local_addr).collect::<Result<Vec<_>, _>>()?;
    invocation::from_anywhere(at, http.is_none());
    let pinning = Pinning::unless_dev(dev, Pinning::WriteMissing);
    let config = configuration::complete(config, &own, pinning)?;
    let helper = Arc::new(PrivilegedHelper::start(at)?);
    let mut reload = ReloadContext::new(at, &config, followed, own, dev, helper)?;
    let helper = Arc::clone(&reload.helper);
    // Only HTTP requests carry credentials. For another transport, the file is checked and no more.
    let status = reload.status.clone().filter(|_| listener.is_some());
    let key_follower =
        KeyFollower::load(&config, status, move || helper.read_api_keys())?.filter(|_| listener.is_some());
    let authentication = LiveAuthentication::new(&config, key_follower.as_ref().map(KeyFollower::keys))?;
    reload.authentication.clone_from(&authentication);
    let front = front_door(&config, tls.as_ref().map(TlsFollower::identity), authentication);
    let keys = Keys::read(at, &config, SharedCode::Use)?;
    // Outside of the wall, and before the first thread.
    let launcher = Launcher::start(at, &config).map(Arc::new);
    let wall = landlock::raise(&config, &keys, None)?;
    let outside = launcher.clone().map(|launcher| launcher as Arc<dyn OutsideOpener>);
    reload.scope = wall.scope.clone().map(|scope| LandlockScope { outside, ..scope });
    let audit = record::audit(&config, false)?;
    reload.record = matches!(config.audit, Audit::File(_)).then(|| audit.clone());
    let audit = admin.iter().fold(audit, |audit, admin| admin.observe(audit));
    let traces = config.trace.clone().zip(config.ambient.network.clone());
    let traces = traces.map(|(trace, network)| Arc::new(TraceExporter::new(trace, network)));
    let audit = traces.iter().fold(audit, |audit, traces| audit.with_tracer(traces.tracer()));
    let is_for_one_client = listener.is_none() && local.is_none();
    let runtime = wall.runtime_of(threads(is_for_one_client, &config))?;
    let gateway = OnceLock::new();
    let listeners = Listeners { http: listener.map(|listener| (listener, front)), local, admin };
    let sending = traces.clone().map(|traces| runtime.spawn(async move { traces.run().await }));
    let access = WallAccess { scope: reload.scope.clone(), launcher };
    let store = replicas::store(&config)?;
    let host = HostParts { config, keys, access, audit: audit.clone(), store };
    let served = runtime.block_on(serve(host, listeners, reload, (key_follower, tls), &gateway));
    gateway.get().into_iter().for_each(|gateway: &Arc<Gateway>| gateway.end_calls(SHUTDOWN_TIMEOUT));
    sending.iter().for_each(tokio::task::JoinHandle::abort);
    if let Some(why) = traces.and_then(|traces| runtime.block_on(async move { traces.flush(RECORD_TIMEOUT).await })) {
        tracing::warn!("{why}");
    }
    // Ends the running calls, so that their records are written.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    drop(gateway);
    audit.finish(RECORD_TIMEOUT);
    served.map(|()| ExitCode::SUCCESS)
}

/// How many threads serve requests. One client needs one thread if no guest runs in this process: to wake another one
/// costs more than what it would do. Long work of the host lets another thread take over (`limits::cpu_timer`).
fn threads(is_for_one_client: bool, config: &Config) -> usize {
    if is_for_one_client && !config.has_own_guests() { 1 } else { processors() }
}

/// Keeps a timer that is always due soon. For a new timer that is due before all others, tokio wakes the thread that
/// waits for events (two system calls and a context switch). Without this timer, the time-out of nearly every request
/// would do that.
async fn keep_timers_cheap() {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Where clients connect. Without either, one client is at standard input and output.
struct Listeners {
    http: Option<(StdListener, FrontDoor)>,
    local: Option<UnixListener>,
    /// The operator's own endpoint.
    admin: Option<AdminEndpoint>,
}

/// What the host is made of.
struct HostParts {
    config: Config,
    keys: Keys,
    access: WallAccess,
    audit: Sink,
    store: Option<Arc<SharedStore>>,
}

/// Serves on `listeners`. Sets `gateway` once the gateway is made.
async fn serve(
    parts: HostParts,
    listeners: Listeners,
    reload: ReloadContext,
    followers: (Option<KeyFollower>, Option<TlsFollower>),
    gateway: &OnceLock<Arc<Gateway>>,
) -> Result<(), Failure> {
    tokio::spawn(keep_timers_cheap());
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Until the reloader handles SIGHUP, this handler keeps the signal from ending the process.
    let _hangups = signal(SignalKind::hangup())?;
    let leaving = CancellationToken::new();
    let left = leaving.clone();
    let (delay, notice) = (parts.config.serve.drain_delay, listeners.admin.as_ref().map(AdminEndpoint::stop_notice));
    let stop = async move {
        let mut signalled = async || {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        };
        signalled().await;
        notice.iter().for_each(StopNotice::begin);
        left.cancel();
        if !delay.is_zero() {
            tracing::info!("stopping in {}", humantime::format_duration(delay));
            // A second signal ends the delay.
            let _ = tokio::time::timeout(delay, signalled()).await;
        }
        tracing::info!("stopping");
    }
    .shared();
    let has_tools = parts.config.tools;
    let consents: Arc<dyn ConsentWriter> = reload.helper.clone();
    let host = start(parts, consents, reload, followers)?;
    let _ = gateway.set(Arc::clone(&host.gateway));
    if let Some(admin) = listeners.admin {
        admin.start(Arc::clone(&host.gateway), host.store.clone(), Arc::clone(&host.replicas))?;
    }
    let cursors = Arc::new(Cursors::new(&host.cursor_key));
    let handler = |transport, evidence| {
        let (gateway, cursors) = (Arc::clone(&host.gateway), Arc::clone(&cursors));
        Handler::new(gateway, cursors, transport, authenticate(evidence)).with_tools(has_tools)
    };
    if listeners.http.is_none() && listeners.local.is_none() {
        if std::io::stdin().is_terminal() {
            log::say("Waiting for an MCP client on standard input. Try `belljar list`.");
        }
        return Ok(transport::stdio::serve(handler("stdio", Evidence::OwnUser), stop).await?);
    }
    let local = listeners.local.map(tokio::net::UnixListener::from_std).transpose()?;
    let local = local.map(|listener| {
        tracing::info!("listening on the local socket");
        transport::local_socket::serve(handler("stdio", Evidence::OwnUser), listener, std::process::id(), stop.clone())
    });
    let http = listeners.http.map(|(listener, front)| {
        let listener = TcpListener::from_std(listener)?;
        let scheme = if front.tls.is_some() { "https" } else { "http" };
        tracing::info!("listening on {scheme}://{}{}", listener.local_addr()?, transport::http::PATH);
        Ok(transport::http::serve(handler("http", Evidence::Loopback), listener, front, leaving, stop))
    });
    let http = http.transpose().map_err(|error: std::io::Error| Failure::from(error))?;
    let ((), served) = tokio::join!(async { OptionFuture::from(local).await.unwrap_or_default() }, async {
        OptionFuture::from(http).await.unwrap_or(Ok(()))
    });
    Ok(served?)
}

/// Starts the host, and the tasks that apply changes while belljar serves.
fn start(
    HostParts { config, keys, access, audit, store }: HostParts,
    consents: Arc<dyn ConsentWriter>,
    reload: ReloadContext,
    (api_keys, tls): (Option<KeyFollower>, Option<TlsFollower>),
) -> Result<StartedHost, Failure> {
    let (watcher, config) = (startup::watcher(), Arc::new(config));
    let (host, loader) =
        startup::assemble(config, keys, |_| Ok(audit), Some(consents), access, watcher.clone(), store)?;
    let (gateway, store) = (Arc::clone(&host.gateway), host.store.clone());
    let keys = api_keys.as_ref().map(KeyFollower::keys);
    let follower = ReplicaFollower { gateway, store, keys, replicas: Arc::clone(&host.replicas) };
    tokio::spawn(follower.run());
    if let Some(api_keys) = api_keys {
        tokio::spawn(api_keys.run(watcher.clone()));
    }
    if let Some(tls) = tls {
        tokio::spawn(tls.run(Arc::clone(&reload.helper), watcher.clone()));
    }
    tokio::spawn(reload.run(loader, watcher, Arc::clone(&host.gateway)));
    Ok(host)
}
