//! The verbs of the command line, with their options and help texts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;

use super::flags::{self, CallArgs, DefinitionsArgs, DevFlag, WriteFlags};
use super::{
    add, audit, call, can, completions, connect, declare, dev, doctor, export, import, init, key, login, new, prompt,
    publish, search, status, top, up, upgrade,
};
use crate::config::listen_address;
use crate::server::location::LocationArgs;

/// A verb with its options.
#[derive(Subcommand)]
pub(super) enum Verb {
    /// Serve MCP on standard input and output, or over HTTP.
    ///
    /// Applies changes of components and of the configuration while it runs. SIGHUP makes it read all of them again. On
    /// standard input and output, it joins the belljar that `belljar up` has started for this configuration, if there is one.
    #[command(
        after_help = "Examples:\n  belljar serve --plugins ~/plugins\n  belljar serve --files ~/notes ~/papers\n  belljar serve --config belljar.toml --http 127.0.0.1:8600\n\nThe audit record has one line of JSON for each call. It is in record/audit.jsonl in the\nstate directory ($XDG_STATE_HOME/belljar, or ~/.local/state/belljar), unless the\nconfiguration sets audit = ...; docs/reference/record.md explains the lines. The log goes to standard\nerror. RUST_LOG selects its level, for example RUST_LOG=warn."
    )]
    Serve {
        #[command(flatten)]
        at: LocationArgs,
        /// Serve Streamable HTTP at http://ADDR/mcp instead of standard input and output. ADDR is a loopback address
        /// with a port: 127.0.0.1:8600, localhost:8600, [::1]:8600 or 8600. Port 0 selects a free port. Other addresses
        /// need [auth] and [serve] in the configuration.
        #[arg(long, value_name = "ADDR", value_parser = listen_address)]
        http: Option<SocketAddr>,
        /// Serve these directories without a configuration: a mount for each, which can only read. Uses the provider
        /// "files" that is installed with belljar.
        #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["config", "plugins", "place", "dev"])]
        files: Vec<PathBuf>,
        /// Serve in this process, even if `belljar up` has started one that this client could join.
        #[arg(long, conflicts_with = "http")]
        alone: bool,
        #[command(flatten)]
        dev: DevFlag,
    },
    /// Write a configuration with comments, and create the plugin directory.
    #[command(after_help = init::HELP)]
    Init {
        #[command(flatten)]
        at: LocationArgs,
    },
    /// Add a component as a mount: show what it will be able to do, ask, and copy it into the plugin directory.
    #[command(after_help = add::HELP)]
    Add {
        #[command(flatten)]
        add: add::AddArgs,
    },
    /// Remove a mount: its component, its table in the configuration, and its digest in the lock.
    #[command(after_help = "Example:\n  belljar remove notes")]
    Remove {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        #[command(flatten)]
        write: WriteFlags,
    },
    /// Put a newer version in the place of a component that was fetched: show what differs, check its signature, ask.
    #[command(after_help = upgrade::HELP)]
    Upgrade {
        #[command(flatten)]
        upgrade: upgrade::UpgradeArgs,
    },
    /// Look for components in the indexes of the configuration. Exit code 1 if nothing is found.
    #[command(after_help = search::HELP)]
    Search {
        #[command(flatten)]
        search: search::SearchArgs,
    },
    /// Ask the registries for newer versions of the components that were fetched. Exit code 1 if there are any.
    #[command(after_help = "Examples:\n  belljar outdated\n  belljar outdated --json")]
    Outdated {
        #[command(flatten)]
        at: LocationArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compare the components with the lock, without a network. Exit code 1 if one differs.
    #[command(after_help = "Examples:\n  belljar verify\n  belljar verify --json")]
    Verify {
        #[command(flatten)]
        at: LocationArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Explain a mount: where its component comes from, who signed it, what it may do.
    #[command(after_help = "Example:\n  belljar why tides")]
    Why {
        #[command(flatten)]
        at: LocationArgs,
        /// The name of the mount.
        #[arg(value_name = "MOUNT")]
        mount: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Push a component to a registry: show what will be public, sign it, ask.
    #[command(after_help = publish::HELP)]
    Publish {
        #[command(flatten)]
        publish: publish::PublishArgs,
    },
    /// Write the configuration, its lock and its components into one file, without secrets.
    #[command(after_help = export::HELP)]
    Export {
        #[command(flatten)]
        export: export::ExportArgs,
    },
    /// Set belljar up from what `belljar export` wrote: show what each mount will be able to do, and ask.
    #[command(after_help = import::HELP)]
    Import {
        #[command(flatten)]
        import: import::ImportArgs,
    },
    /// Start one belljar for all clients of this user. Each `belljar serve` joins it.
    #[command(after_help = up::HELP)]
    Up {
        #[command(flatten)]
        up: up::UpArgs,
    },
    /// Stop the belljar that `belljar up` started. Clients that are connected get errors until it is started again.
    #[command(after_help = "Example:\n  belljar down --config ~/belljar.toml")]
    Down {
        #[command(flatten)]
        at: LocationArgs,
    },
    /// Show each belljar that `belljar up` started, with its clients.
    #[command(after_help = status::HELP)]
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show what a running belljar does, by mount and by caller.
    #[command(after_help = top::HELP)]
    Top {
        #[command(flatten)]
        top: top::TopArgs,
    },
    /// Sum the record of calls: by mount, by caller, and what was refused.
    #[command(after_help = audit::HELP)]
    Audit {
        #[command(flatten)]
        audit: audit::AuditArgs,
    },
    /// Connect an MCP client to belljar: show the change of the client's configuration, ask, and write it.
    #[command(after_help = connect::HELP)]
    Connect {
        #[command(flatten)]
        connect: connect::ConnectArgs,
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
    /// Look for what is wrong with this set-up, and say the cure of each finding.
    #[command(after_help = doctor::HELP)]
    Doctor {
        #[command(flatten)]
        at: LocationArgs,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the script with which a shell completes belljar's commands.
    #[command(after_help = completions::HELP)]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a directory.
    #[command(after_help = "Example:\n  belljar man ~/.local/share/man/man1")]
    Man {
        /// The directory. It is created if it is missing.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Prints the JSON schema of belljar.toml. Editors complete and check the file with it.
    #[command(
        after_help = "Example:\n  belljar schema > belljar.schema.json\n\nWith this line at the top of belljar.toml, plugins for TOML (Taplo, Even Better TOML) use the schema:\n  #:schema ./belljar.schema.json"
    )]
    Schema {
        /// Print the JSON schema of a line of the record instead.
        #[arg(long)]
        record: bool,
    },
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
        #[arg(long, value_name = "LANG")]
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
        /// Only what the build needs, and a provider with one resource: no tests, no README, no sample data.
        #[arg(long, conflicts_with = "with")]
        minimal: bool,
        /// List the languages and the tools that each needs.
        #[arg(long, conflicts_with_all = ["lang", "name", "dir", "with", "minimal"])]
        list: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

impl Verb {
    /// The location arguments, for the verbs that have them.
    pub(super) fn location(&mut self) -> Option<&mut LocationArgs> {
        match self {
            Self::Serve { at, .. }
            | Self::Down { at }
            | Self::Init { at }
            | Self::Doctor { at, .. }
            | Self::Remove { at, .. }
            | Self::List { at, .. }
            | Self::Skills { at, .. }
            | Self::Read { at, .. }
            | Self::Can { at, .. }
            | Self::Check { at, .. }
            | Self::Grant { at, .. }
            | Self::Revoke { at, .. }
            | Self::Set { at, .. }
            | Self::Outdated { at, .. }
            | Self::Verify { at, .. }
            | Self::Why { at, .. }
            | Self::Trust { at, .. } => Some(at),
            Self::Login { mount } | Self::Logout { mount } => Some(&mut mount.at),
            Self::Tools { list } | Self::Prompts { list } => Some(&mut list.at),
            Self::Call { call } | Self::Prompt { call } => Some(&mut call.at),
            Self::Key { verb } => Some(verb.location()),
            Self::Connect { connect } => Some(&mut connect.at),
            Self::Up { up } => Some(&mut up.at),
            Self::Add { add } => Some(&mut add.at),
            Self::Search { search } => Some(&mut search.at),
            Self::Upgrade { upgrade } => Some(&mut upgrade.at),
            Self::Publish { publish } => Some(&mut publish.at),
            Self::Export { export } => Some(&mut export.at),
            Self::Import { import } => Some(&mut import.at),
            Self::Top { top } => Some(&mut top.at),
            Self::Audit { audit } => Some(audit.location()),
            Self::Status { .. }
            | Self::Completions { .. }
            | Self::Man { .. }
            | Self::Inspect { .. }
            | Self::Schema { .. }
            | Self::Declare { .. }
            | Self::Dev { .. }
            | Self::New { .. } => None,
        }
    }
}
