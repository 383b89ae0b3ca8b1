//! The commands. With `config` and `grants`, the only place where paths, addresses, variables and processes are named:
//! what they lead to is opened here and handed down.
//!
//! Exit codes: 0 fine, 1 failed, 2 misused.

mod change;
mod check;
mod compiler;
mod declare;
mod dev;
mod flags;
mod grant;
mod inherited;
mod inspect;
mod keys;
mod list;
mod live;
mod log;
mod new;
mod open;
mod open_files;
mod outside;
mod pins;
mod progress;
mod read;
mod record_file;
mod revoke;
mod serve;
mod serving;
mod set;
mod shown;
mod spelling;
mod store;
mod trust;
mod wall;

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::model::{Caller, Fault};

/// Runs untrusted WebAssembly components as MCP resource providers.
///
/// Drop .wasm files into a directory; each becomes a mount of one MCP server. A provider can do nothing that you did not
/// grant, and no read can use more than its limits.
#[derive(Parser)]
#[command(name = "belljar", version, propagate_version = true, arg_required_else_help = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

/// Where things are.
#[derive(Args, Clone, Default)]
struct Where {
    /// The directory of components (default: "plugins" beside the configuration).
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
    /// The configuration (default: belljar.toml in the working directory, if it is there).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The plugins and the configuration that a belljar of yours serves: the name that stands in the commands it prints.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["plugins", "config"])]
    place: Option<String>,
    /// Whether the configuration may be missing although it is named.
    #[arg(skip)]
    may_lack: bool,
}

/// Whether components are compared with the lock.
#[derive(Args, Clone, Copy)]
struct Dev {
    /// For developing providers: compare no component with belljar.lock, and write none. Whatever lies in the plugin
    /// directory uses the grants of its mount.
    #[arg(long)]
    dev: bool,
}

/// Whether the operator is asked.
#[derive(Args, Clone, Copy)]
struct Yes {
    /// Write without asking.
    #[arg(long)]
    yes: bool,
    /// Print JSON: what was changed. What is asked goes to standard error.
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Serves MCP on standard input and output, or over HTTP. Components that come, change or go, and changes of the
    /// configuration, are taken over while it runs; SIGHUP has everything read again.
    #[command(
        after_help = "Examples:\n  belljar serve --plugins ~/plugins\n  belljar serve --config belljar.toml --http 127.0.0.1:8600\n\nEach call is on record, a line of JSON each, in record/audit.jsonl in the state directory\n($XDG_STATE_HOME/belljar, or ~/.local/state/belljar), unless audit = ... in the\nconfiguration says otherwise; docs/record.md explains the lines. The log goes to standard\nerror; RUST_LOG says what is in it (RUST_LOG=warn for less)."
    )]
    Serve {
        #[command(flatten)]
        at: Where,
        /// Serve Streamable HTTP at http://ADDR/mcp instead: 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600. Loopback
        /// only; port 0 takes a free one.
        #[arg(long, value_name = "ADDR", value_parser = serve::address)]
        http: Option<SocketAddr>,
        #[command(flatten)]
        dev: Dev,
    },
    /// Lists every mount with its resources and templates, and what is not served, and why.
    #[command(after_help = "Examples:\n  belljar list\n  belljar list --mount notes --json")]
    List {
        #[command(flatten)]
        at: Where,
        /// Only this mount.
        #[arg(long, value_name = "NAME")]
        mount: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        dev: Dev,
    },
    /// Reads a resource.
    #[command(
        after_help = "Examples:\n  belljar read belljar://clock/Europe/Berlin\n  belljar read belljar://notes/photo.png --output photo.png"
    )]
    Read {
        #[command(flatten)]
        at: Where,
        /// The resource.
        #[arg(value_name = "URI")]
        uri: String,
        /// Write the contents to a file instead of standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print JSON: every piece of the contents, blobs in base64.
        #[arg(long, conflicts_with = "output")]
        json: bool,
        #[command(flatten)]
        dev: Dev,
    },
    /// Says what a file is: exports, imports, digest, which grants it could use, whether it can be mounted.
    #[command(after_help = "Example:\n  belljar inspect plugins/files.wasm")]
    Inspect {
        /// The file. No configuration is needed, and none of its code runs.
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Checks configuration, components and grants, and says what would be served. Opens no socket, runs no provider.
    #[command(
        after_help = "Examples:\n  belljar check --config belljar.toml\n  belljar check --compile\n  belljar check --conformance notes.wasm"
    )]
    Check {
        #[command(flatten)]
        at: Where,
        /// Only compile components, into the cache that "serve" uses, and say how long each took and how large its code is:
        /// these files, or those of the plugin directory.
        #[arg(long, value_name = "FILE.wasm", num_args = 0.., conflicts_with = "conformance")]
        compile: Option<Vec<PathBuf>>,
        /// For developing providers: run this component, and say where it does not keep to the interface. It has the grants
        /// of the mounts that the configuration makes of a file of its name, and is compared with no lock.
        #[arg(long, value_name = "FILE.wasm", conflicts_with = "plugins")]
        conformance: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        dev: Dev,
    },
    /// Gives a mount a capability: shows the change of the configuration and what it means, asks, and writes it.
    #[command(
        after_help = "Examples:\n  belljar grant notes --fs /notes=~/notes\n  belljar grant weather --http https://api.example --method GET --path '/points/*'"
    )]
    Grant {
        #[command(flatten)]
        at: Where,
        /// The mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        #[command(flatten)]
        gifts: flags::Gifts,
        #[command(flatten)]
        yes: Yes,
    },
    /// Takes a capability away from a mount.
    #[command(after_help = "Examples:\n  belljar revoke notes --fs /notes\n  belljar revoke notes --all")]
    Revoke {
        #[command(flatten)]
        at: Where,
        /// The mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        #[command(flatten)]
        takings: flags::Takings,
        /// Take away everything that it holds.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        yes: Yes,
    },
    /// Lets the components of mounts use their grants as they are now: shows what changed, and asks.
    #[command(after_help = "Example:\n  belljar trust notes")]
    Trust {
        #[command(flatten)]
        at: Where,
        /// The mounts.
        #[arg(value_name = "MOUNT", required = true)]
        mounts: Vec<String>,
        #[command(flatten)]
        yes: Yes,
    },
    /// Changes settings in the configuration that are no grants: shows the change, asks, and writes it.
    #[command(
        after_help = "Examples:\n  belljar set 'mounts.notes.limits.time = \"10s\"'\n  belljar set 'secrets.weather = { env = \"WEATHER_TOKEN\" }' list-time=5s"
    )]
    Set {
        #[command(flatten)]
        at: Where,
        /// A line as it would stand at the top of the file: a key, "=", a value. Text needs no quotes of its own.
        #[arg(value_name = "KEY = VALUE", required = true)]
        lines: Vec<String>,
        #[command(flatten)]
        yes: Yes,
    },
    /// For developing providers: writes into a component what it needs, for whoever will run it.
    #[command(after_help = declare::HELP)]
    Declare {
        /// The component. It is changed.
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// What it needs, in TOML.
        #[arg(value_name = "NEEDS.toml")]
        needs: PathBuf,
    },
    /// Builds, serves and follows the provider that you are writing: builds on each save, shows each call with what it used and
    /// was refused, and does what you type.
    #[command(after_help = dev::HELP)]
    Dev {
        /// The project.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// What builds it, run by sh in DIR.
        #[arg(long, value_name = "COMMAND")]
        build: Option<String>,
        /// The configuration (default: belljar.toml in DIR, if it is there).
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Where MCP clients connect. Loopback only; port 0 takes a free one (default: a port of the project's own, the same at
        /// each start, or a free one where that is taken).
        #[arg(long, value_name = "ADDR", value_parser = serve::address)]
        http: Option<SocketAddr>,
    },
    /// Makes a project for a provider in the language of your choice, and says what to type next.
    #[command(after_help = new::help())]
    New {
        /// The language.
        #[arg(long, value_name = "LANG", required_unless_present = "list")]
        lang: Option<String>,
        /// The provider's name, and its mount's: small letters, digits, "-".
        #[arg(value_name = "NAME", required_unless_present = "list")]
        name: Option<String>,
        /// Where to make it (default: NAME in the working directory). Must not exist yet.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Show the languages, and what each needs.
        #[arg(long, conflicts_with_all = ["lang", "name", "dir"])]
        list: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// The verb of a process that belljar starts for itself. People never see it: no help and no tip names it.
#[derive(Parser)]
#[command(name = "belljar", disable_help_flag = true)]
struct Inner {
    #[command(subcommand)]
    verb: InnerVerb,
}

#[derive(Subcommand)]
enum InnerVerb {
    /// Compiles a component from standard input to standard output.
    #[command(name = compiler::VERB)]
    Compile,
    /// Writes what a person allowed for good into the configuration, and reads it again.
    #[command(name = outside::VERB)]
    Outside {
        #[command(flatten)]
        at: Where,
    },
}

/// What each verb's help ends with.
const EXIT_CODES: &str = "Exit codes: 0 fine, 1 failed, 2 misused.";

/// The same of the verbs that say what is served.
const SERVED_CODES: &str = "Exit codes: 0 fine, 1 failed (or something is refused or in quarantine), 2 misused.";

/// The command line as people know it.
fn parse() -> Command {
    let with_codes = |verb: clap::Command| {
        let codes = if ["list", "check"].contains(&verb.get_name()) { SERVED_CODES } else { EXIT_CODES };
        let help = verb.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
        verb.after_help(format!("{help}{codes}"))
    };
    let matches = Command::command().mut_subcommands(with_codes).get_matches();
    Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Why a command failed.
enum Failure {
    /// It was misused.
    Misused(String),
    /// It did not work.
    Failed(String),
}

impl Failure {
    /// What to say.
    fn why(self) -> String {
        match self {
            Self::Misused(why) | Self::Failed(why) => why,
        }
    }
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        let details = match &fault.error {
            crate::model::ReadError::Internal(details) => format!("\n  {details}"),
            _ => String::new(),
        };
        Self::Failed(format!("{}{details}", fault.in_lines()))
    }
}

/// Whoever types the command.
fn caller() -> Caller {
    Caller { transport: "cli", client: None, peer: 0 }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the command line")]
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let is_inner = [compiler::VERB, outside::VERB].iter().any(|verb| first == *verb);
    let inner = is_inner.then(|| Inner::parse().verb);
    // Usage errors end here, with clap's message and exit code 2.
    let command = if inner.is_none() { Some(parse()) } else { None };
    let _finish = log::Finish;
    log::hook_panics();
    #[cfg(feature = "unguarded")]
    if let Err(why) = unguard() {
        log::say(&why);
        return ExitCode::from(2);
    }
    // What builds and follows a project starts the author's own programs, with whatever they were given.
    let starts_others = command.as_ref().is_some_and(|one| matches!(one.verb, Verb::Dev { .. } | Verb::New { .. }));
    if !starts_others {
        inherited::close();
    }
    // Before any wall is raised, and before anything is opened. Our own child processes need few.
    if inner.is_none() {
        open_files::raise();
    }
    let verb = match (inner, command) {
        (Some(InnerVerb::Compile), _) => return compiler::child(),
        (Some(InnerVerb::Outside { at }), _) => return outside::child(&at),
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
    let mut at = Where::default();
    if let Some(place) = verb.place() {
        *place = place.clone().resolved()?;
        at = place.clone();
    }
    // A server says for itself who reads it.
    if !matches!(verb, Verb::Serve { .. } | Verb::Dev { .. }) {
        spelling::as_typed(&at);
    }
    match verb {
        Verb::Serve { at, http, dev } => serve::run(&at, dev.dev, http),
        Verb::List { at, mount, json, dev } => list::run(&at, dev.dev, mount.as_deref(), json),
        Verb::Read { at, uri, output, json, dev } => read::run(&at, dev.dev, &uri, output.as_deref(), json),
        Verb::Inspect { file, json } => inspect::run(&file, json),
        Verb::Check { at, compile: Some(files), json, .. } => check::compile::run(&at, &files, json),
        Verb::Check { at, conformance: Some(file), json, .. } => check::conformance::run(at, &file, json),
        Verb::Check { at, json, dev, .. } => check::run(&at, dev.dev, json),
        Verb::Grant { at, mount, gifts, yes } => grant::run(&at, &mount, &gifts.0, yes),
        Verb::Revoke { at, mount, takings, all, yes } => revoke::run(&at, &mount, &takings.0, all, yes),
        Verb::Set { at, lines, yes } => set::run(&at, &lines, yes),
        Verb::Declare { file, needs } => declare::run(&file, &needs),
        Verb::Dev { dir, build, config, http } => dev::run(&dir, build.as_deref(), config.as_deref(), http),
        Verb::New { lang, name, dir, list: _, json } => match (lang, name) {
            (Some(lang), Some(name)) => new::run(&lang, &name, dir.as_deref(), json),
            // clap sees to it that the list was asked for.
            _ => new::list(json),
        },
        Verb::Trust { at, mounts, yes } => trust::run(&at, &mounts, yes),
    }
}

impl Verb {
    /// Where things are, for the verbs that ask.
    fn place(&mut self) -> Option<&mut Where> {
        match self {
            Self::Serve { at, .. }
            | Self::List { at, .. }
            | Self::Read { at, .. }
            | Self::Check { at, .. }
            | Self::Grant { at, .. }
            | Self::Revoke { at, .. }
            | Self::Set { at, .. }
            | Self::Trust { at, .. } => Some(at),
            Self::Inspect { .. } | Self::Declare { .. } | Self::Dev { .. } | Self::New { .. } => None,
        }
    }
}

/// Switches off the guards that `BELLJAR_UNGUARDED` names, in a build that can.
#[cfg(feature = "unguarded")]
fn unguard() -> Result<(), String> {
    #[expect(clippy::disallowed_methods, reason = "what the test that started us wants to see fail")]
    let names = std::env::var("BELLJAR_UNGUARDED").unwrap_or_default();
    log::say(&format!("this build is for tests; guards that are off: \"{names}\""));
    crate::model::Guard::switch_off(&names)
}

/// Writes to standard output.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// How writing to standard output ended. A reader that has seen enough and went away, as `head` does, is not a failure: the
/// command ends as if all had been taken.
fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Writes what a person should know: to standard error where standard output is for JSON.
fn say(as_json: bool, text: &str) -> Result<(), Failure> {
    match as_json {
        false => print(text),
        true => Ok(std::io::stderr().lock().write_all(text.as_bytes())?),
    }
}

/// Writes a JSON value to standard output.
fn print_json(value: &serde_json::Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}
