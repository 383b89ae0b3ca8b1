//! `belljar login` and `belljar logout`: the login of a person at the authorization server of an HTTP grant.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use super::output;
use crate::config::Config;
use crate::grants::http::oauth::device::{DeviceLoginError, PendingLogin};
use crate::grants::http::oauth::login_file::Login;
use crate::grants::http::oauth::login_state::{LoginState, NeededLogin, needed_logins};
use crate::grants::http::oauth::token_server::TokenServer;
use crate::model::{MountName, command, text};
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::pins::Pinning;
use crate::server::{configuration, log};

/// The help of `login`.
pub(super) const HELP: &str = "Example:
  belljar login calendar

The grant has  oauth = { issuer = \"URL\", client = \"ID\" }  without a secret.
The login is stored in the state directory, in a file that only you can read.
Running servers use it at once.";

/// The most characters of a page's address.
const MAX_PAGE: usize = 500;

/// The logins that a mount needs. Fails if it needs none.
fn logins(config: &Config, mount: &MountName) -> Result<Vec<NeededLogin>, Failure> {
    let own = config.mounts.get(mount);
    let needed = own.map(|own| needed_logins(&own.grants.http, mount, &config.ambient)).unwrap_or_default();
    match needed.is_empty() {
        true => Err(Failure::Failed(format!(
            "\"{mount}\" has no grant that needs a login; such a grant has  oauth = {{ issuer = \"URL\", client = \"ID\" }}"
        ))),
        false => Ok(needed),
    }
}

/// Logs in at each authorization server that the grants of a mount need.
pub(super) fn run(at: &LocationArgs, mount: &str) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    let config = configuration::config(at, &[], Pinning::ReadOnly)?;
    let needed = logins(&config, &mount)?;
    let network = config.ambient.network.as_ref().ok_or_else(|| "no network is configured".to_owned())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    for one in needed {
        let server = TokenServer::new(Arc::clone(&one.settings), Arc::clone(network));
        runtime.block_on(log_in(&mount, &one, &server)).map_err(|error| explain(&mount, &one, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn log_in(mount: &MountName, one: &NeededLogin, server: &TokenServer) -> Result<(), DeviceLoginError> {
    let pending = PendingLogin::begin(server).await?;
    let mut shown = format!(
        "To let \"{mount}\" use {}, open this page and enter the code:\n  page  {}\n  code  {}\n",
        one.settings.server(),
        text::excerpt(&pending.page(), MAX_PAGE),
        pending.user_code()
    );
    if let Some(page) = pending.whole_page() {
        shown += &format!("or open this page, and compare the code:\n  page  {}\n", text::excerpt(&page, MAX_PAGE));
    }
    let minutes = pending.time_left().as_secs().div_ceil(60);
    log::say(&format!("{shown}Waiting for {minutes} min at most."));
    log::flush();
    let login = pending.finish(server, &one.place).await?;
    log::say(&format!("Logged in at {}. {}", one.settings.server(), end_of(&login)));
    Ok(())
}

/// When a login ends, as a sentence.
fn end_of(login: &Login) -> String {
    match login.ends() {
        Some(ends) => format!("The login ends at {}.", shown_time(ends)),
        None => "The authorization server does not say when the login ends.".to_owned(),
    }
}

/// A time to the second, in UTC.
pub(super) fn shown_time(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}

/// The failure of a login, with the cure if there is one.
fn explain(mount: &MountName, one: &NeededLogin, error: &DeviceLoginError) -> Failure {
    let why = match error {
        DeviceLoginError::Server(error) => error.cure(mount.as_str(), &one.origin),
        other => other.to_string(),
    };
    Failure::Failed(format!("cannot log in at {}: {why}", one.settings.server()))
}

/// Forgets the logins of a mount.
pub(super) fn forget(at: &LocationArgs, mount: &str) -> Result<ExitCode, Failure> {
    log::start("warn");
    let mount = MountName::new(mount).map_err(Failure::misused)?;
    let config = configuration::config(at, &[], Pinning::ReadOnly)?;
    for one in logins(&config, &mount)? {
        let server = one.settings.server();
        let removed = one.place.remove().map_err(|error| Failure::Failed(error.to_string()))?;
        let result = if removed { "was forgotten; running servers stop using it" } else { "does not exist" };
        output::print(&format!("The login of \"{mount}\" at {server} {result}.\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One line for each login that a mount needs, and true if the login is in use.
pub(super) fn states(config: &Config, mount: &MountName) -> Vec<(String, bool)> {
    let Some(own) = config.mounts.get(mount) else { return Vec::new() };
    let login = || format!("run: {}", command::line(["login", mount.as_str()]));
    let now = SystemTime::now();
    let line = |one: NeededLogin| {
        let server = one.settings.server();
        match one.state(now) {
            LoginState::Absent => (format!("{server}: nobody has logged in; {}", login()), false),
            LoginState::Ended => (format!("{server}: the login has ended; {}", login()), false),
            LoginState::Unusable(error) => (format!("{server}: {error}"), false),
            LoginState::Valid(login) => {
                let ends = login.ends().map_or("no known end".to_owned(), |ends| format!("ends {}", shown_time(ends)));
                (format!("{server}: since {}, {ends}", shown_time(login.since())), true)
            }
        }
    };
    needed_logins(&own.grants.http, mount, &config.ambient).into_iter().map(line).collect()
}
