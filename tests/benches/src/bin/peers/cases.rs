//! What is asked: the groups of the table. Not every combination: those that somebody would ask for.

use belljar_tests::Era;

use crate::servers::Kind;

/// How messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// So many bytes of text.
    Text(usize),
    /// So many bytes, which travel in base64.
    Blob(usize),
    /// A file of 4 KiB, read anew each time.
    File,
    /// A page of a hundred resources.
    List,
}

/// One group of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) transport: Transport,
    pub(crate) what: What,
    /// All in the older era; otherwise each in the newest that it speaks.
    pub(crate) is_older: bool,
    /// Connections over HTTP, each with its own session where there are any; requests in flight over stdio.
    pub(crate) clients: u32,
    /// Requests of a round.
    pub(crate) operations: u32,
}

/// The size of the large bodies.
pub(crate) const LARGE: usize = 1 << 20;

const fn case(transport: Transport, what: What, operations: u32) -> Case {
    Case { transport, what, is_older: false, clients: 1, operations }
}

const fn older(case: Case) -> Case {
    Case { is_older: true, ..case }
}

const fn crowd(case: Case) -> Case {
    Case { clients: 16, ..case }
}

/// All groups, in the order of the table.
pub(crate) const CASES: [Case; 16] = {
    use Transport::{Http, Stdio};
    use What::{Blob, File, List, Text};
    [
        case(Http, Text(1024), 600),
        crowd(case(Http, Text(1024), 600)),
        older(case(Http, Text(1024), 600)),
        older(crowd(case(Http, Text(1024), 600))),
        case(Http, Text(64 << 10), 100),
        case(Http, Text(LARGE), 16),
        case(Http, Blob(LARGE), 16),
        case(Http, File, 200),
        case(Http, List, 100),
        case(Stdio, Text(1024), 600),
        crowd(case(Stdio, Text(1024), 600)),
        older(case(Stdio, Text(1024), 600)),
        case(Stdio, Text(64 << 10), 100),
        case(Stdio, Text(LARGE), 16),
        case(Stdio, File, 200),
        case(Stdio, List, 100),
    ]
};

impl Case {
    /// The name of the group.
    pub(crate) fn title(&self) -> String {
        let transport = match self.transport {
            Transport::Stdio => "stdio",
            Transport::Http => "HTTP",
        };
        let what = match self.what {
            What::Text(1024) => "1 KiB text",
            What::Text(LARGE) => "1 MiB text",
            What::Text(_) => "64 KiB text",
            What::Blob(_) => "1 MiB blob",
            What::File => "4 KiB file",
            What::List => "list of 100",
        };
        let clients = match (self.clients, self.transport) {
            (1, _) => String::new(),
            (many, Transport::Http) => format!(", {many} clients"),
            (many, Transport::Stdio) => format!(", {many} in flight"),
        };
        let era = if self.is_older { format!(", {}", Era::Older.version()) } else { String::new() };
        format!("{transport}, {what}{clients}{era}")
    }

    /// The servers that have what is asked for, belljar first.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let case = *self;
        Kind::ALL.into_iter().filter(move |kind| kind.asked(case.what, 0).is_some())
    }

    /// The era in which `kind` is asked.
    pub(crate) fn era(&self, kind: Kind) -> Era {
        if self.is_older { Era::Older } else { kind.newest() }
    }

    /// How many requests warm a server up for this group: just-in-time compilers want hundreds.
    pub(crate) fn warm(&self) -> u32 {
        match self.what {
            What::Text(LARGE) | What::Blob(_) => 60,
            _ => 1000,
        }
    }

    /// What a reader has to know of one server's row.
    pub(crate) fn note(&self, kind: Kind) -> Option<String> {
        match (kind, self.what) {
            (Kind::Everything, What::Text(_)) => Some("reads its own document \"extension.md\", 965 bytes".to_owned()),
            (Kind::Everything, What::List) => Some("lists the 7 documents that it has".to_owned()),
            _ => None,
        }
    }
}
