//! `belljar up`: starts the belljar that serves all clients of this user.

use std::process::ExitCode;

use belljar_join::Instance;
use clap::Args;

use super::output;
use crate::server::failure::Failure;
use crate::server::location::{self, LocationArgs};
use crate::server::serve::{self, Clients};
use crate::server::shared_socket::SharedSocket;
use crate::server::{invocation, log, up};

/// The help of `up`.
pub(super) const HELP: &str = "Examples:
  belljar up
  belljar up --config ~/belljar.toml
  belljar up --restart

From then on, each `belljar serve` that a client starts with the same configuration joins this
belljar: a thin process passes the messages on. So all clients share one belljar, and each keeps
its own session, subscriptions and limits. With  http = ...  in [serve], it serves HTTP too.

Where the user's systemd runs, belljar runs as a unit: it starts at each login, and again after
a crash. Elsewhere it runs in the background until `belljar down`, or until the machine stops.

--restart is for a new program: clients keep their sessions, and requests that were not answered
are sent again.";

/// The options of `up`.
#[derive(Args)]
pub(super) struct UpArgs {
    #[command(flatten)]
    pub(super) at: LocationArgs,
    /// Stop the belljar that runs, and start this program. Clients stay connected.
    #[arg(long, conflicts_with = "foreground")]
    restart: bool,
    /// Run in the background even where the user's systemd runs.
    #[arg(long, conflicts_with = "foreground")]
    background: bool,
    /// Serve in this process until it is stopped.
    #[arg(long)]
    foreground: bool,
    /// Start the belljar as it was started before, unless somebody stopped it. Joined clients use it.
    #[arg(long, conflicts_with_all = ["foreground", "restart"], hide = true)]
    again: bool,
    /// Leave the session of the terminal. belljar itself uses it.
    #[arg(long, requires = "foreground", hide = true)]
    detach: bool,
}

/// Starts the belljar, and waits until it serves.
pub(super) fn run(args: &UpArgs) -> Result<ExitCode, Failure> {
    let socket = SharedSocket::of(&args.at)?;
    if args.foreground {
        return serve(args, &socket);
    }
    log::start("warn");
    let lock = socket.start_lock()?;
    if args.again {
        let stopped = || Failure::Failed("belljar was stopped; to start it again: belljar up".to_owned());
        up::launch(&socket, &socket.files().instance().ok_or_else(stopped)?, &lock)?;
        return Ok(ExitCode::SUCCESS);
    }
    #[expect(clippy::disallowed_methods, reason = "this program, which runs in the background from now on")]
    let program = std::env::current_exe()?;
    let instance = Instance {
        program,
        place: invocation::write_place_file(&args.at).map_err(|why| Failure::Failed(why.to_string()))?,
        config: location::config_path(&args.at)?.0,
        is_unit: !args.background && up::has_systemd(),
    };
    let running = socket.status();
    if args.restart && running.is_some() {
        // The file stays: clients wait for the next belljar.
        socket.write_instance(&instance)?;
        up::end(&socket)?;
    }
    let status = up::launch(&socket, &instance, &lock)?;
    let is_new = running.is_none_or(|running| running.pid != status.pid);
    let said = if is_new { "belljar serves" } else { "belljar already serves" };
    output::print(&format!(
        "{said} {} (pid {}). Clients that start `belljar serve` with this configuration join it.\n",
        instance.config.display(),
        status.pid
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Serves in this process.
fn serve(args: &UpArgs, socket: &SharedSocket) -> Result<ExitCode, Failure> {
    if args.detach {
        let _ = rustix::process::setsid();
    }
    let Some(_serving) = socket.serving_lock()? else {
        let pid = socket.status().map(|status| format!(" (pid {})", status.pid)).unwrap_or_default();
        return Err(Failure::Failed(format!(
            "belljar already serves this configuration{pid}; to stop it: belljar down"
        )));
    };
    let listener = socket.listen()?;
    serve::run(&args.at, false, Clients::Shared(listener))
}
