//! The command line: one file for each command. This module parses the arguments and prints the results; `server` does
//! the work that several commands share.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong usage.

mod add;
mod arguments;
mod audit;
mod below;
mod blocks;
mod call;
mod can;
mod check;
mod completions;
mod confirm;
mod connect;
mod consent;
mod declare;
mod definitions;
mod dev;
mod doctor;
mod down;
mod export;
mod fetched;
mod fields;
mod flags;
mod form;
mod grant;
mod host;
mod import;
mod init;
mod inspect;
mod key;
mod list;
mod login;
mod man;
mod new;
mod outdated;
mod output;
mod progress;
mod prompt;
mod prompts;
mod publish;
mod read;
mod releases;
mod remove;
mod revoke;
mod revoked;
mod rounds;
mod schema;
mod search;
mod serve_files;
mod set;
mod skills;
mod status;
mod table;
mod tools;
mod top;
mod trust;
mod up;
mod upgrade;
mod verb;
mod verify;
mod why;

use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use belljar_join::{SocketFiles, serve_client};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use new::ProjectContent;
use verb::Verb;

use crate::sandbox::Processors;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::serve::Clients;
use crate::server::worker_wall::WorkerWall;
use crate::server::{
    compiler_process, inherited, invocation, launcher, location, log, open_files, privileged_helper, serve,
    worker_process,
};

/// Runs untrusted WebAssembly components as MCP resource providers.
///
/// Put .wasm files into a directory. Each becomes a mount, and all mounts together are one MCP server. A provider has
/// no access to files, network, environment or secrets unless you grant it. Limits bound the time and memory of every
/// read.
#[derive(Parser)]
#[command(name = "belljar", version, propagate_version = true, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

/// The command line of a process that belljar starts for itself. Help and suggestions never name its verbs.
#[derive(Parser)]
#[command(name = "belljar", disable_help_flag = true)]
struct InternalCommand {
    #[command(subcommand)]
    verb: InternalVerb,
}

#[derive(Subcommand)]
enum InternalVerb {
    /// Compiles a component from standard input to standard output.
    #[command(name = compiler_process::VERB)]
    Compile {
        /// Compile for most processors of this architecture, not for the one of this machine.
        #[arg(long)]
        common: bool,
    },
    /// Runs the calls of one mount.
    #[command(name = worker_process::VERB)]
    Worker {
        /// The wall that it raises.
        #[arg(long)]
        wall: WorkerWall,
    },
    /// Starts worker processes, and opens what the configuration grants to them.
    #[command(name = launcher::VERB)]
    Launcher {
        #[command(flatten)]
        at: LocationArgs,
    },
    /// Writes lasting consents into the configuration, and reads the configuration again.
    #[command(name = privileged_helper::VERB)]
    PrivilegedHelper {
        #[command(flatten)]
        at: LocationArgs,
    },
}

/// The last line of each verb's help.
const EXIT_CODES: &str = "Exit codes: 0 success, 1 failure, 2 wrong usage.";

/// The last line of the help of `list` and `check`.
const EXIT_CODES_OF_CATALOG: &str =
    "Exit codes: 0 success, 1 failure (or a component is refused or in quarantine), 2 wrong usage.";

/// The command line with the help of each verb.
fn command_line() -> clap::Command {
    let add = |verb: clap::Command, codes: &str| {
        let help = verb.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
        verb.after_help(format!("{help}{codes}"))
    };
    let with_codes = |verb: clap::Command| {
        let codes = if ["list", "check"].contains(&verb.get_name()) { EXIT_CODES_OF_CATALOG } else { EXIT_CODES };
        add(verb, codes).mut_subcommands(|inner| add(inner, EXIT_CODES))
    };
    Command::command().mut_subcommands(with_codes)
}

/// Parses the command line of a user. Wrong usage ends the process with exit code 2.
fn parse() -> Command {
    let matches = command_line().get_matches();
    Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the command line")]
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let internal = [compiler_process::VERB, privileged_helper::VERB, launcher::VERB, worker_process::VERB];
    let is_internal = internal.iter().any(|verb| first == *verb);
    let internal = is_internal.then(|| InternalCommand::parse().verb);
    let command = if internal.is_none() { Some(parse()) } else { None };
    let _finish = log::FinishOnDrop;
    log::hook_panics();
    #[cfg(feature = "unguarded")]
    if let Err(why) = unguard() {
        log::say(&why);
        return ExitCode::from(2);
    }
    // `dev` and `new` run the author's own tools, which may need the descriptors that they inherit.
    let runs_tools = command.as_ref().is_some_and(|one| matches!(one.verb, Verb::Dev { .. } | Verb::New { .. }));
    if !runs_tools {
        inherited::close();
    }
    // Before the second wall is raised and before any file is opened. The internal processes need few files.
    if internal.is_none() {
        open_files::raise();
    }
    let verb = match (internal, command) {
        (Some(InternalVerb::Compile { common }), _) => {
            return compiler_process::child(if common { Processors::Most } else { Processors::Own });
        }
        (Some(InternalVerb::Worker { wall }), _) => return worker_process::child(wall),
        (Some(InternalVerb::Launcher { at }), _) => return launcher::process::child(at),
        (Some(InternalVerb::PrivilegedHelper { at }), _) => return privileged_helper::child(&at),
        (None, Some(command)) => command.verb,
        (None, None) => return ExitCode::FAILURE,
    };
    let (code, why) = match run(verb) {
        Ok(code) => return code,
        Err(Failure::Failed(why)) => (1, why),
        Err(Failure::Misused(why)) => (2, why),
    };
    log::say(&why);
    ExitCode::from(code)
}

/// Runs a verb.
fn run(mut verb: Verb) -> Result<ExitCode, Failure> {
    let mut at = LocationArgs::default();
    if let Some(location) = verb.location() {
        *location = location.clone().resolved()?;
        at = location.clone();
    }
    // The servers choose the spelling themselves: the reader of their hints may not be the person who started them.
    if !matches!(verb, Verb::Serve { .. } | Verb::Up { .. } | Verb::Dev { .. }) {
        invocation::as_typed(&at);
    }
    match verb {
        Verb::Serve { at, http, files, alone, dev } if files.is_empty() => serve(&at, http, alone, dev.dev),
        Verb::Serve { http, files, .. } => serve(&serve_files::place(&files)?, http, true, false),
        Verb::Completions { shell } => completions::run(command_line(), shell),
        Verb::Man { directory } => man::run(command_line(), &directory),
        Verb::Doctor { at, json } => doctor::run(&at, json),
        Verb::Init { at } => init::run(&at),
        Verb::Add { add } => add::run(&add),
        Verb::Remove { at, mount, write } => remove::run(&at, &mount, write),
        Verb::Upgrade { upgrade } => upgrade::run(&upgrade),
        Verb::Search { search } => search::run(&search),
        Verb::Outdated { at, json } => outdated::run(&at, json),
        Verb::Verify { at, json } => verify::run(&at, json),
        Verb::Why { at, mount, json } => why::run(&at, &mount, json),
        Verb::Publish { publish } => publish::run(&publish),
        Verb::Export { export } => export::run(&export),
        Verb::Import { import } => import::run(&import),
        Verb::Up { up } => up::run(&up),
        Verb::Down { at } => down::run(&at),
        Verb::Status { json } => status::run(json),
        Verb::Top { top } => top::run(&top),
        Verb::Audit { audit } => audit::run(&audit),
        Verb::List { at, below: Some(uri), json, dev, .. } => below::run(&at, dev.dev, &uri, json),
        Verb::List { at, mount, json, dev, .. } => list::run(&at, dev.dev, mount.as_deref(), json),
        Verb::Skills { at, mount, verify, json, dev } => skills::run(&at, dev.dev, mount.as_deref(), verify, json),
        Verb::Read { at, uri, output, json, dev } => read::run(&at, dev.dev, &uri, output.as_deref(), json),
        Verb::Tools { list } => tools::run(list.host(), list.mount.as_deref(), list.json),
        Verb::Call { call } => call::run(call.host(), &call.words, call.output.as_deref(), call.json),
        Verb::Prompts { list } => prompts::run(list.host(), list.mount.as_deref(), list.json),
        Verb::Prompt { call } => prompt::run(call.host(), &call.words, call.output.as_deref(), call.json),
        Verb::Inspect { file, json } => inspect::run(&file, json),
        Verb::Check { at, compile: Some(files), json, .. } => check::compile::run(&at, &files, json),
        Verb::Check { at, conformance: Some(file), json, .. } => check::conformance::run(at, &file, json),
        Verb::Check { at, json, dev, .. } => check::run(&at, dev.dev, json),
        Verb::Can { at, request, json } => can::run(&at, &request, json),
        Verb::Grant { at, mount, grants, write } => grant::run(&at, &mount, &grants.0, write),
        Verb::Revoke { at, mount, revocations, all, write } => revoke::run(&at, &mount, &revocations.0, all, write),
        Verb::Login { mount } => login::run(&mount.at, &mount.mount),
        Verb::Logout { mount } => login::forget(&mount.at, &mount.mount),
        Verb::Key { verb } => key::run(verb),
        Verb::Set { at, lines, write } => set::run(&at, &lines, write),
        Verb::Schema { record } => schema::run(record),
        Verb::Declare { file, needs } => declare::run(&file, &needs),
        Verb::Dev { dir, build, config, http } => dev::run(&dir, build.as_deref(), config.as_deref(), http),
        Verb::New { lang, name, dir, with, minimal, list: _, json } => match (lang, name) {
            (Some(lang), Some(name)) => {
                let content = if minimal { ProjectContent::Minimal } else { ProjectContent::of(with) };
                new::run(&lang, &name, dir.as_deref(), &content, json)
            }
            (None, Some(name)) => Err(new::without_language(&name)),
            // clap requires a name unless `--list` is given.
            (_, None) => new::list(json),
        },
        Verb::Trust { at, mounts, write } => trust::run(&at, &mounts, write),
        Verb::Connect { connect } => connect::run(&connect),
    }
}

/// `belljar serve`: joins the belljar that serves all clients of this user, or serves alone.
fn serve(at: &LocationArgs, http: Option<SocketAddr>, alone: bool, dev: bool) -> Result<ExitCode, Failure> {
    if let Some(address) = http {
        return serve::run(at, dev, Clients::Http(address));
    }
    if !alone && !dev {
        // Without a socket, or without a directory for it, this process serves alone.
        let files = location::place(at).ok().as_ref().and_then(SocketFiles::of);
        if let Some((files, stream)) = files.and_then(|files| files.connect().ok().map(|stream| (files, stream))) {
            become_join();
            serve_client(&files, stream)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    serve::run(at, dev, Clients::Own)
}

/// Becomes the program `belljar-join`, which takes less memory, with the same arguments. Returns if it is not installed beside
/// this program.
fn become_join() {
    let Some(join) = invocation::join_program() else { return };
    #[expect(clippy::disallowed_methods, reason = "the command line")]
    let arguments = std::env::args_os().skip(1);
    #[expect(clippy::disallowed_methods, reason = "belljar-join, which this process becomes")]
    let _ = std::process::Command::new(join).args(arguments).exec();
}

/// Switches off the guards that the environment variable `BELLJAR_UNGUARDED` names. Only a test build has this
/// function.
#[cfg(feature = "unguarded")]
fn unguard() -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "the test that started this process selects the guards")]
    let names = std::env::var("BELLJAR_UNGUARDED").unwrap_or_default();
    log::say(&format!("this build is for tests; guards that are off: \"{names}\""));
    crate::model::guard::switch_off(&names).map_err(|error| error.to_string())
}
