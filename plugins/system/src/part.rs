//! The parts of the machine's state: their names, and the files in which the host gives them.

use std::io::ErrorKind;
use std::path::Path;

use belljar_guest::{Error, Result};
use serde_json::Value;

/// A part of the machine's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Load,
    Memory,
    Disks,
    Processes,
    Services,
    Sensors,
    Network,
    Containers,
}

impl Part {
    pub(crate) const ALL: [Part; 8] = [
        Part::Load,
        Part::Memory,
        Part::Disks,
        Part::Processes,
        Part::Services,
        Part::Sensors,
        Part::Network,
        Part::Containers,
    ];

    /// The word in references, and in the operator's grant.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Part::Load => "load",
            Part::Memory => "memory",
            Part::Disks => "disks",
            Part::Processes => "processes",
            Part::Services => "services",
            Part::Sensors => "sensors",
            Part::Network => "network",
            Part::Containers => "containers",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.word() == word)
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Part::Load => "Load",
            Part::Memory => "Memory",
            Part::Disks => "Disks",
            Part::Processes => "Processes",
            Part::Services => "Services",
            Part::Sensors => "Sensors",
            Part::Network => "Network",
            Part::Containers => "Containers",
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Part::Load => "Load averages, processor time, pressure, and the time since the start",
            Part::Memory => "The use of memory and swap, in bytes",
            Part::Disks => "The local file systems: size, use, free files",
            Part::Processes => "The processes with the most memory: name, user, state, memory, processor time",
            Part::Services => "The running services: memory, processor time, number of processes",
            Part::Sensors => "Temperatures, fans, voltages and power",
            Part::Network => "The network interfaces: bytes, packets, errors since the start",
            Part::Containers => "The running containers: runtime, memory, processor time, number of processes",
        }
    }

    fn file(self) -> String {
        format!("{}.json", self.word())
    }

    /// The facts of the part. Fails with [`Error::Denied`] if the operator did not grant it: then there is no file.
    pub(crate) fn read(self, facts: &Path) -> Result<Value> {
        let word = self.word();
        let bytes = std::fs::read(facts.join(self.file())).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                Error::denied(format_args!("the part \"{word}\" of the system was not granted"))
            }
            _ => Error::unavailable(format_args!("the part \"{word}\" cannot be read now: {error}")),
        })?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::failed(format_args!("the host's facts of the part \"{word}\" are not JSON: {error}"))
        })
    }
}

/// The granted parts. Fails with [`Error::Denied`] if there are none.
pub(crate) fn granted(facts: &Path) -> Result<Vec<Part>> {
    let none = || Error::denied("no part of the system was granted");
    let entries = std::fs::read_dir(facts).map_err(|_| none())?;
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    let granted: Vec<Part> =
        Part::ALL.into_iter().filter(|part| names.iter().any(|name| *name == *part.file())).collect();
    if granted.is_empty() { Err(none()) } else { Ok(granted) }
}
