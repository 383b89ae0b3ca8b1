//! `belljar serve`.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::keys::{Keys, Shared};
use super::live::{self, Live};
use super::outside::Outside;
use super::pins::Pinning;
use super::{Failure, Where, log, open, wall};
use crate::audit::Sink;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::gateway::consent::Keeper;
use crate::mcp::Handler;
use crate::mcp::cursor::Cursors;
use crate::model::Guard;
use crate::transport;

/// How long threads may take to end after everything was answered.
const END: Duration = Duration::from_millis(300);

/// How long the last records may take to be written.
const RECORD: Duration = Duration::from_secs(1);

pub(super) fn run(at: &Where, dev: bool, http: Option<SocketAddr>) -> Result<ExitCode, Failure> {
    super::log::start("info,rmcp=error");
    if let Some(address) = &http {
        check_address(address)?;
    }
    // The address first: when it is taken, nothing needs to be loaded to say so. Inside the wall none can be had.
    let listener = http.map(listen).transpose()?;
    let own = listener.as_ref().map(StdListener::local_addr).transpose()?;
    super::spelling::from_anywhere(at, http.is_none());
    let seen = live::look_at_configuration(at)?;
    let config = open::config(at, own.as_slice(), Pinning::unless_dev(dev, Pinning::Pin))?;
    let outside = Arc::new(Outside::start(at)?);
    let mut live = Live::new(at, (&config, seen), own.into_iter().collect(), dev, outside)?;
    let keys = Keys::read(at, &config, Shared::Used)?;
    let wall = wall::raise(&config, &keys, None)?;
    live.within.clone_from(&wall.within);
    let audit = open::audit(&config, false)?;
    let runtime = wall.runtime()?;
    let gateway = OnceLock::new();
    let served = runtime.block_on(serve((config, keys), listener, live, (audit.clone(), &gateway)));
    gateway.get().into_iter().for_each(|gateway: &Arc<Gateway>| gateway.end_calls(END));
    // Ends what is still running, so that its records are written.
    runtime.shutdown_timeout(END);
    drop(gateway);
    audit.finish(RECORD);
    served.map(|()| ExitCode::SUCCESS)
}

/// Keeps a timer due soon. For a new timer that is due before all others, tokio wakes the thread that waits for events
/// (two system calls and a switch); without this, that is the time-out of nearly every request.
async fn keep_timers_cheap() {
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Listens on `address`, without a thread.
pub(super) fn listen(address: SocketAddr) -> Result<StdListener, Failure> {
    let fail = |error| Failure::Failed(format!("cannot listen on \"{address}\": {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    #[expect(clippy::disallowed_methods, reason = "the operator's address, checked to be loopback")]
    let bound = runtime.block_on(TcpListener::bind(address));
    bound.and_then(TcpListener::into_std).map_err(fail)
}

/// `gateway`: where the gateway will stand.
async fn serve(
    (config, keys): (Config, Keys),
    listener: Option<StdListener>,
    live: Live,
    (audit, gateway): (Sink, &OnceLock<Arc<Gateway>>),
) -> Result<(), Failure> {
    tokio::spawn(keep_timers_cheap());
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Somebody waits for these later; until then they end nothing.
    let _hangups = signal(SignalKind::hangup())?;
    let stop = async move {
        tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
        tracing::info!("stopping");
    };
    let listener = listener.map(TcpListener::from_std).transpose()?;
    let has_tools = config.tools;
    let keeper: Arc<dyn Keeper> = live.outside.clone();
    let opened = open::open(config, keys, audit, Some(keeper), Some(live))?;
    let _ = gateway.set(Arc::clone(&opened.gateway));
    let cursors = Arc::new(Cursors::new(&opened.key));
    match listener {
        None => {
            if std::io::stdin().is_terminal() {
                log::say("Waiting for an MCP client on standard input. Try `belljar list`.");
            }
            Ok(transport::stdio::serve(Handler::new(opened.gateway, cursors, "stdio").with_tools(has_tools), stop)
                .await?)
        }
        Some(listener) => {
            tracing::info!("listening on http://{}{}", listener.local_addr()?, transport::http::PATH);
            Ok(transport::http::serve(
                Handler::new(opened.gateway, cursors, "http").with_tools(has_tools),
                listener,
                transport::http::Bounds::default(),
                stop,
            )
            .await?)
        }
    }
}

/// The address that `written` means: an IP address with a port, `localhost` with one, or a port alone. A name is never looked
/// up.
///
/// # Errors
/// Says what is expected.
pub(super) fn address(written: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = written.parse() {
        return Ok(address);
    }
    let port = match written.rsplit_once(':') {
        None => written,
        Some((host, port)) if host.is_empty() || host.eq_ignore_ascii_case("localhost") => port,
        Some(_) => "",
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = is_port.then(|| port.parse().ok()).flatten();
    port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).ok_or_else(|| {
        "expected an address of this machine with a port, such as 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600".to_owned()
    })
}

/// Checks that `address` may be listened on.
///
/// # Errors
/// When it is not a loopback address.
pub(super) fn check_address(address: &SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() || !Guard::Loopback.is_on() {
        return Ok(());
    }
    Err(format!(
        "\"{address}\" is not a loopback address, and this version of belljar has no authentication: anyone who reaches it could read everything; listen on 127.0.0.1:{} and put an authenticating proxy in front",
        address.port()
    ))
}

#[cfg(test)]
mod tests {
    use super::{address, check_address};

    #[test]
    fn addresses_are_written_as_people_write_them() {
        for local in ["8808", ":8808", "localhost:8808", "LOCALHOST:8808", "127.0.0.1:8808"] {
            assert_eq!(address(local), Ok("127.0.0.1:8808".parse().unwrap()), "{local}");
        }
        assert_eq!(address("[::1]:8808"), Ok("[::1]:8808".parse().unwrap()));
        assert_eq!(address("0"), Ok("127.0.0.1:0".parse().unwrap()));
        // An address of others is understood, and refused by its own rule.
        assert!(check_address(&address("0.0.0.0:80").unwrap()).is_err());
        for bad in [
            "",
            ":",
            "localhost",
            "localhost:",
            "localhost:x",
            "65536",
            "+80",
            "-1",
            "evil.example:80",
            "::1:80",
            "a.localhost:80",
        ] {
            assert!(address(bad).unwrap_err().contains("expected an address"), "{bad}");
        }
    }

    #[test]
    fn only_loopback_is_listened_on() {
        for fine in ["127.0.0.1:1", "127.9.9.9:0", "[::1]:80"] {
            assert!(check_address(&fine.parse().unwrap()).is_ok(), "{fine}");
        }
        for open in ["0.0.0.0:80", "[::]:80", "192.168.1.1:80", "[::ffff:127.0.0.1]:80", "8.8.8.8:80"] {
            assert!(check_address(&open.parse().unwrap()).unwrap_err().contains("no authentication"), "{open}");
        }
    }
}
