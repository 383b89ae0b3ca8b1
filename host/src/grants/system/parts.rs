//! The parts of the system that can be granted, their names, and the file of each.

use std::path::PathBuf;

use super::error::SystemGrantError;
use crate::model::text;

/// A word of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SystemPart {
    /// All parts below, except for command lines.
    All,
    Load,
    Memory,
    Disks,
    Processes,
    Services,
    Sensors,
    Network,
    Containers,
    /// The arguments of processes. Programs get passwords there, so `all` leaves them out.
    CommandLines,
}

impl SystemPart {
    /// Every word, in the order in which people read them.
    pub(super) const WORDS: &[Self] = &[
        Self::All,
        Self::Load,
        Self::Memory,
        Self::Disks,
        Self::Processes,
        Self::Services,
        Self::Sensors,
        Self::Network,
        Self::Containers,
        Self::CommandLines,
    ];

    /// The parts that have a file, sorted by its name.
    pub(super) const FILES: &[Self] = &[
        Self::Containers,
        Self::Disks,
        Self::Load,
        Self::Memory,
        Self::Network,
        Self::Processes,
        Self::Sensors,
        Self::Services,
    ];

    /// The word in the configuration.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Load => "load",
            Self::Memory => "memory",
            Self::Disks => "disks",
            Self::Processes => "processes",
            Self::Services => "services",
            Self::Sensors => "sensors",
            Self::Network => "network",
            Self::Containers => "containers",
            Self::CommandLines => "command-lines",
        }
    }

    /// The part that has this word.
    pub(super) fn parse(word: &str) -> Result<Self, SystemGrantError> {
        let found = Self::WORDS.iter().find(|part| part.word() == word).copied();
        let unknown = || SystemGrantError::Unknown { word: text::excerpt(word, 80), expected: Self::expected() };
        found.ok_or_else(unknown)
    }

    /// All words, for messages.
    fn expected() -> String {
        let words: Vec<String> = Self::WORDS.iter().map(|part| format!("\"{}\"", part.word())).collect();
        match words.split_last() {
            Some((last, first)) => format!("{} or {last}", first.join(", ")),
            None => String::new(),
        }
    }

    /// The name of the file below `/system`. Empty for words without a file.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Self::All | Self::CommandLines => "",
            Self::Load => "load.json",
            Self::Memory => "memory.json",
            Self::Disks => "disks.json",
            Self::Processes => "processes.json",
            Self::Services => "services.json",
            Self::Sensors => "sensors.json",
            Self::Network => "network.json",
            Self::Containers => "containers.json",
        }
    }

    /// The part whose file has this name.
    pub(super) fn of_file(name: &str) -> Option<Self> {
        Self::FILES.iter().find(|part| part.file() == name).copied()
    }

    /// What the grant lets a provider see, after "it can see".
    pub(super) const fn sees(self) -> &'static str {
        match self {
            Self::All => "all parts of this machine's state below, but no command lines",
            Self::Load => "the load of the processors, the pressure on them, and the time since the start",
            Self::Memory => "the use of memory and swap",
            Self::Disks => "the mounted local file systems and their use",
            Self::Processes => "the processes of all users: names, users, memory and processor time",
            Self::Services => "the services, their memory and processor time",
            Self::Sensors => "temperatures, fans, voltages and power",
            Self::Network => "the network interfaces and their counters",
            Self::Containers => "the containers, their memory and processor time",
            Self::CommandLines => "the command lines of the processes of all users, in which passwords may stand",
        }
    }

    /// The files and directories that belljar reads for this part.
    pub(super) fn kernel_paths(self) -> Vec<PathBuf> {
        let paths: &[&str] = match self {
            Self::Load => &["/proc/loadavg", "/proc/stat", "/proc/uptime", "/proc/pressure"],
            Self::Memory => &["/proc/meminfo"],
            Self::Disks => &["/proc/self/mountinfo"],
            // Processes come and go, so only the whole of procfs has them.
            Self::Processes | Self::CommandLines => &["/proc"],
            Self::Services | Self::Containers => &["/sys/fs/cgroup"],
            Self::Sensors => &["/sys/class/hwmon", "/sys/class/thermal", "/sys/devices"],
            // Files below are made anew at each open, and only their directory lasts.
            Self::Network => &["/proc/self/net"],
            Self::All => return Self::FILES.iter().flat_map(|part| part.kernel_paths()).collect(),
        };
        paths.iter().map(PathBuf::from).collect()
    }
}
