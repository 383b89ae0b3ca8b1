//! The command line: one file for each command. This module parses the arguments and prints the results; `server` does
//! the work that several commands share.
//!
//! Exit codes: 0 success, 1 failure, 2 wrong usage.

mod arguments;
mod below;
mod blocks;
mod call;
mod can;
mod check;
mod confirm;
mod consent;
mod declare;
mod definitions;
mod dev;
mod fields;
mod flags;
mod form;
mod grant;
mod host;
mod inspect;
mod key;
mod list;
mod login;
mod new;
mod output;
mod progress;
mod prompt;
mod prompts;
mod read;
mod revoke;
mod rounds;
mod schema;
mod set;
mod skills;
mod table;
mod tools;
mod trust;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use flags::{CallArgs, DefinitionsArgs, DevFlag, WriteFlags};

use crate::config::listen_address;
use crate::server::failure::Failure;
use crate::server::location::LocationArgs;
use crate::server::{compiler_process, inherited, invocation, log, open_files, privileged_helper, serve};

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

#[derive(Subcommand)]
enum Verb {
    /// Serve MCP on standard input and output, or over HTTP.
    ///
    /// Applies changes of components and of the configuration while it runs. SIGHUP makes it read all of them again.
    #[command(
        after_help = "Examples:\n  belljar serve --plugins ~/plugins\n  belljar serve --config belljar.toml --http 127.0.0.1:8600\n\nThe audit record has one line of JSON for each call. It is in record/audit.jsonl in the\nstate directory ($XDG_STATE_HOME/belljar, or ~/.local/state/belljar), unless the\nconfiguration sets audit = ...; docs/reference/record.md explains the lines. The log goes to standard\nerror. RUST_LOG selects its level, for example RUST_LOG=warn."
    )]
    Serve {
        #[command(flatten)]
        at: LocationArgs,
        /// Serve Streamable HTTP at http://ADDR/mcp instead of standard input and output. ADDR is a loopback address
        /// with a port: 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600. Port 0 selects a free port. Other addresses
        /// need [auth] and [serve] in the configuration.
        #[arg(long, value_name = "ADDR", value_parser = listen_address)]
        http: Option<SocketAddr>,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// List every mount with its resources and templates, and each component that is not served, with the reason.
    #[command(after_help = "Examples:\n  belljar list\n  belljar list --mount notes --json")]
    List {
        #[command(flatten)]
        at: LocationArgs,
        /// List only this mount.
        #[arg(long, value_name = "NAME")]
        mount: Option<String>,
        /// List only what is directly below this URI: the entries of a directory, the tables of a database.
        #[arg(long, value_name = "URI", conflicts_with = "mount")]
        below: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// List the skills of all mounts with their files and digests, as MCP clients get them.
    #[command(
        after_help = "Examples:\n  belljar skills\n  belljar skills --mount notes --verify\n  belljar skills --json"
    )]
    Skills {
        #[command(flatten)]
        at: LocationArgs,
        /// List only the skills of this mount.
        #[arg(long, value_name = "NAME")]
        mount: Option<String>,
        /// Read every file again, and compare its size and digest. Exit code 1 if one differs.
        #[arg(long)]
        verify: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// Read a resource and print its contents.
    #[command(
        after_help = "Examples:\n  belljar read belljar://clock/Europe/Berlin\n  belljar read belljar://notes/photo.png --output photo.png"
    )]
    Read {
        #[command(flatten)]
        at: LocationArgs,
        /// The URI of the resource; "belljar list" shows all resources.
        #[arg(value_name = "URI")]
        uri: String,
        /// Write the contents to a file instead of standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Print JSON, with every item of the contents; binary items are in base64.
        #[arg(long, conflicts_with = "output")]
        json: bool,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// List the tools of every mount: what each does, what it can change by the grants of its mount, and its arguments.
    #[command(after_help = "Examples:\n  belljar tools\n  belljar tools --mount notes --json")]
    Tools {
        #[command(flatten)]
        list: DefinitionsArgs,
    },
    /// Call a tool and print its result. Asks on the terminal what the provider asks.
    #[command(after_help = call::HELP)]
    Call {
        #[command(flatten)]
        call: CallArgs,
    },
    /// List the prompts of every mount, with their arguments.
    #[command(after_help = "Examples:\n  belljar prompts\n  belljar prompts --mount notes --json")]
    Prompts {
        #[command(flatten)]
        list: DefinitionsArgs,
    },
    /// Get a prompt and print its messages. Asks on the terminal what the provider asks.
    #[command(after_help = prompt::HELP)]
    Prompt {
        #[command(flatten)]
        call: CallArgs,
    },
    /// Describe a component file: its exports, imports and digest, the grants it can use, and whether it can be
    /// mounted.
    #[command(after_help = "Example:\n  belljar inspect plugins/files.wasm")]
    Inspect {
        /// The component file. Needs no configuration and runs no code of the component.
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check the configuration, the components and their grants, and show what "belljar serve" would serve. Opens no
    /// socket and runs no provider.
    #[command(
        after_help = "Examples:\n  belljar check --config belljar.toml\n  belljar check --compile\n  belljar check --conformance notes.wasm"
    )]
    Check {
        #[command(flatten)]
        at: LocationArgs,
        /// Only compile components, into the cache that "belljar serve" uses, and show the time and the code size of
        /// each. Without FILE.wasm, compiles all components of the plugin directory.
        #[arg(long, value_name = "FILE.wasm", num_args = 0.., conflicts_with = "conformance")]
        compile: Option<Vec<PathBuf>>,
        /// For developing providers: run this component and report every breach of the interface. It has the grants of
        /// the mounts whose component has this file name in the configuration. belljar.lock is ignored.
        #[arg(long, value_name = "FILE.wasm", conflicts_with = "plugins")]
        conformance: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// Say whether the rules of the configuration allow a request, and which rule decides. Contacts nobody and runs no
    /// provider.
    #[command(after_help = can::HELP)]
    Can {
        #[command(flatten)]
        at: LocationArgs,
        #[command(flatten)]
        request: can::CanArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Grant a capability to a mount: show the change of the configuration and its meaning, ask, and write it.
    #[command(
        after_help = "Examples:\n  belljar grant notes --fs /notes=~/notes\n  belljar grant weather --http https://api.example --method GET --path '/points/*'"
    )]
    Grant {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        #[command(flatten)]
        grants: flags::GrantFlags,
        #[command(flatten)]
        write: WriteFlags,
    },
    /// Revoke a capability of a mount: show the change of the configuration and its meaning, ask, and write it.
    #[command(after_help = "Examples:\n  belljar revoke notes --fs /notes\n  belljar revoke notes --all")]
    Revoke {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        #[command(flatten)]
        revocations: flags::RevokeFlags,
        /// Revoke all grants of the mount.
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        write: WriteFlags,
    },
    /// Trust changed components: show what changed in each, ask, and let it use the grants of its mount again.
    #[command(after_help = "Example:\n  belljar trust notes")]
    Trust {
        #[command(flatten)]
        at: LocationArgs,
        /// The names of the mounts.
        #[arg(value_name = "MOUNT", required = true)]
        mounts: Vec<String>,
        #[command(flatten)]
        write: WriteFlags,
    },
    /// Log in at the authorization server of an HTTP grant: show a page and a code, wait for a person, and store the login.
    #[command(after_help = login::HELP)]
    Login {
        #[command(flatten)]
        mount: flags::MountArgs,
    },
    /// Forget the logins of a mount. Running servers stop using them.
    #[command(after_help = "Example:\n  belljar logout calendar")]
    Logout {
        #[command(flatten)]
        mount: flags::MountArgs,
    },
    /// Make, list and revoke API keys, with which HTTP clients authenticate.
    #[command(
        after_help = "Examples:\n  belljar key new ci --scope notes:read --expires 90d\n  belljar key list\n  belljar key revoke ci"
    )]
    Key {
        #[command(subcommand)]
        verb: key::KeyVerb,
    },
    /// Change settings in the configuration, except grants: show the change, ask, and write it.
    #[command(
        after_help = "Examples:\n  belljar set 'mounts.notes.limits.time = \"10s\"'\n  belljar set 'secrets.weather = { env = \"WEATHER_TOKEN\" }' list-time=5s"
    )]
    Set {
        #[command(flatten)]
        at: LocationArgs,
        /// A TOML line with the full key, such as: mounts.notes.limits.time = "10s". Text values need no TOML quotes.
        #[arg(value_name = "KEY = VALUE", required = true)]
        lines: Vec<String>,
        #[command(flatten)]
        write: WriteFlags,
    },
    /// Prints the JSON schema of belljar.toml. Editors complete and check the file with it.
    #[command(
        after_help = "Example:\n  belljar schema > belljar.schema.json\n\nWith this line at the top of belljar.toml, plugins for TOML (Taplo, Even Better TOML) use the schema:\n  #:schema ./belljar.schema.json"
    )]
    Schema,
    /// For developing providers: write into a component which grants it needs, so that its operator sees them.
    #[command(after_help = declare::HELP)]
    Declare {
        /// The component file. It is overwritten.
        #[arg(value_name = "FILE.wasm")]
        file: PathBuf,
        /// The needs, in TOML (see below).
        #[arg(value_name = "NEEDS.toml")]
        needs: PathBuf,
    },
    /// Build and serve the provider that you are writing. Builds on every save, shows every call with its resource use
    /// and refusals, and runs the commands that you type.
    #[command(after_help = dev::HELP)]
    Dev {
        /// The project directory.
        #[arg(value_name = "DIR", default_value = ".")]
        dir: PathBuf,
        /// The build command, run by sh in DIR.
        #[arg(long, value_name = "COMMAND")]
        build: Option<String>,
        /// The configuration file (default: belljar.toml in DIR, if it exists).
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// The loopback address for MCP clients; port 0 selects a free port (default: a fixed port derived from the
        /// path of the project, or a free port if that one is in use).
        #[arg(long, value_name = "ADDR", value_parser = listen_address)]
        http: Option<SocketAddr>,
    },
    /// Create a project for a provider in the language of your choice, and show the next commands.
    #[command(after_help = new::help())]
    New {
        /// The programming language.
        #[arg(long, value_name = "LANG", required_unless_present = "list")]
        lang: Option<String>,
        /// The name of the provider and of its mount: lower-case letters, digits and "-".
        #[arg(value_name = "NAME", required_unless_present = "list")]
        name: Option<String>,
        /// The directory to create (default: NAME in the working directory). It must not exist yet.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Further parts of the project, each with an example, such as "tools,prompts".
        #[arg(long, value_name = "PARTS", value_delimiter = ',')]
        with: Vec<new::ProjectPart>,
        /// List the languages and the tools that each needs.
        #[arg(long, conflicts_with_all = ["lang", "name", "dir", "with"])]
        list: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
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
    Compile,
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

/// Parses the command line of a user. Wrong usage ends the process with exit code 2.
fn parse() -> Command {
    let add = |verb: clap::Command, codes: &str| {
        let help = verb.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
        verb.after_help(format!("{help}{codes}"))
    };
    let with_codes = |verb: clap::Command| {
        let codes = if ["list", "check"].contains(&verb.get_name()) { EXIT_CODES_OF_CATALOG } else { EXIT_CODES };
        add(verb, codes).mut_subcommands(|inner| add(inner, EXIT_CODES))
    };
    let matches = Command::command().mut_subcommands(with_codes).get_matches();
    Command::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "the command line")]
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let is_internal = [compiler_process::VERB, privileged_helper::VERB].iter().any(|verb| first == *verb);
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
        (Some(InternalVerb::Compile), _) => return compiler_process::child(),
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
    if !matches!(verb, Verb::Serve { .. } | Verb::Dev { .. }) {
        invocation::as_typed(&at);
    }
    match verb {
        Verb::Serve { at, http, dev } => serve::run(&at, dev.dev, http),
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
        Verb::Schema => schema::run(),
        Verb::Declare { file, needs } => declare::run(&file, &needs),
        Verb::Dev { dir, build, config, http } => dev::run(&dir, build.as_deref(), config.as_deref(), http),
        Verb::New { lang, name, dir, with, list: _, json } => match (lang, name) {
            (Some(lang), Some(name)) => new::run(&lang, &name, dir.as_deref(), &with, json),
            // clap requires both unless `--list` is given.
            _ => new::list(json),
        },
        Verb::Trust { at, mounts, write } => trust::run(&at, &mounts, write),
    }
}

impl Verb {
    /// The location arguments, for the verbs that have them.
    fn location(&mut self) -> Option<&mut LocationArgs> {
        match self {
            Self::Serve { at, .. }
            | Self::List { at, .. }
            | Self::Skills { at, .. }
            | Self::Read { at, .. }
            | Self::Can { at, .. }
            | Self::Check { at, .. }
            | Self::Grant { at, .. }
            | Self::Revoke { at, .. }
            | Self::Set { at, .. }
            | Self::Trust { at, .. } => Some(at),
            Self::Login { mount } | Self::Logout { mount } => Some(&mut mount.at),
            Self::Tools { list } | Self::Prompts { list } => Some(&mut list.at),
            Self::Call { call } | Self::Prompt { call } => Some(&mut call.at),
            Self::Key { verb } => Some(verb.location()),
            Self::Inspect { .. } | Self::Schema | Self::Declare { .. } | Self::Dev { .. } | Self::New { .. } => None,
        }
    }
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
