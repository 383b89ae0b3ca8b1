//! The groups of the table: the combinations of transport, operation and clients that occur in practice.

use belljar_tests::Era;

use crate::servers::Kind;

/// The transport of the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    Http,
}

/// The requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A read of a text with this number of bytes.
    Text(usize),
    /// A read of a blob with this number of bytes. The answer has them in base64.
    Blob(usize),
    /// A read of a file of 4 KiB. The server reads the file each time.
    File,
    /// A request of one page with a hundred resources.
    List,
}

/// One group of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) transport: Transport,
    pub(crate) operation: Operation,
    /// True if all servers use sessions (2025-11-25). Otherwise each uses its newest revision.
    pub(crate) is_older: bool,
    /// Over HTTP, the number of connections; each has its own session if the server has sessions. Over stdio, the
    /// number of requests in flight.
    pub(crate) clients: u32,
    /// The number of requests in a round.
    pub(crate) operations: u32,
}

/// The size of the large bodies.
pub(crate) const LARGE: usize = 1 << 20;

/// The size of the largest body. Only servers in Rust are asked for it.
pub(crate) const HUGE: usize = 8 << 20;

const fn case(transport: Transport, operation: Operation, operations: u32) -> Case {
    Case { transport, operation, is_older: false, clients: 1, operations }
}

/// The same case with sessions.
const fn older(case: Case) -> Case {
    Case { is_older: true, ..case }
}

/// The same case with 16 clients.
const fn crowd(case: Case) -> Case {
    Case { clients: 16, ..case }
}

/// All groups, in the order of the table.
pub(crate) const CASES: [Case; 18] = {
    use Operation::{Blob, File, List, Text};
    use Transport::{Http, Stdio};
    [
        case(Http, Text(1024), 600),
        crowd(case(Http, Text(1024), 600)),
        older(case(Http, Text(1024), 600)),
        older(crowd(case(Http, Text(1024), 600))),
        case(Http, Text(64 << 10), 100),
        case(Http, Text(LARGE), 16),
        case(Http, Text(HUGE), 4),
        case(Http, Blob(LARGE), 16),
        case(Http, File, 200),
        case(Http, List, 100),
        case(Stdio, Text(1024), 600),
        crowd(case(Stdio, Text(1024), 600)),
        older(case(Stdio, Text(1024), 600)),
        case(Stdio, Text(64 << 10), 100),
        case(Stdio, Text(LARGE), 16),
        case(Stdio, Text(HUGE), 4),
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
        let name = match self.operation {
            Operation::Text(1024) => "1 KiB text",
            Operation::Text(LARGE) => "1 MiB text",
            Operation::Text(HUGE) => "8 MiB text",
            Operation::Text(_) => "64 KiB text",
            Operation::Blob(_) => "1 MiB blob",
            Operation::File => "4 KiB file",
            Operation::List => "list of 100",
        };
        let clients = match (self.clients, self.transport) {
            (1, _) => String::new(),
            (many, Transport::Http) => format!(", {many} clients"),
            (many, Transport::Stdio) => format!(", {many} in flight"),
        };
        let era = if self.is_older { format!(", {}", Era::Session.version()) } else { String::new() };
        format!("{transport}, {name}{clients}{era}")
    }

    /// The servers that support the operation, belljar first.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let case = *self;
        let speaks = move |kind: &Kind| !(case.is_older && matches!(kind, Kind::Bare | Kind::Limit));
        Kind::ALL.into_iter().filter(speaks).filter(move |kind| kind.request(case.operation, 0).is_some())
    }

    /// The era of the requests to `kind`.
    pub(crate) fn era(&self, kind: Kind) -> Era {
        if self.is_older { Era::Session } else { kind.newest() }
    }

    /// The number of requests that warm up a server. Just-in-time compilers need hundreds of requests.
    pub(crate) fn warm(&self) -> u32 {
        match self.operation {
            Operation::Text(LARGE) | Operation::Blob(_) => 60,
            Operation::Text(HUGE) => 10,
            _ => 1000,
        }
    }

    /// A note for readers about one server's row.
    pub(crate) fn note(&self, kind: Kind) -> Option<String> {
        match (kind, self.operation) {
            (Kind::Everything, Operation::Text(_)) => {
                Some("reads its own document \"extension.md\", 965 bytes".to_owned())
            }
            (Kind::Everything, Operation::List) => Some("lists the 7 documents that it has".to_owned()),
            _ => None,
        }
    }
}
