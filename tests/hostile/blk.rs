//! Blocking: guests that wait for what never comes, in the host's hands or the kernel's.

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::expect::{Expect, limit};
use crate::row::{Row, Stops, imp};

pub(crate) fn rows() -> Vec<Row> {
    vec![
        imp("BLK-01", "a provider sleeps for ever")
            .time(400)
            .read("forever", limit("time"))
            .read("sleep/3600000", limit("time"))
            .stopped_by(&["time"]),
        imp("BLK-02", "a provider waits for the first of several things that never come")
            .time(400)
            .read("never", limit("time"))
            .stopped_by(&["time"]),
        imp("BLK-06", "a granted directory holds a pipe that nobody writes to, and the provider opens it")
            .time(1500)
            .config("fs = { \"/d\" = \"blk-06\" }")
            .prepare(|site| {
                site.write("blk-06/file", "x");
                let path = site.path("blk-06/pipe");
                mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a place for a pipe");
            })
            .read("raw/pipe", Expect::Contains(&["refused: "]))
            .read("open/%252Fd%252Fpipe", Expect::Contains(&["refused: "]))
            .read("raw/file", Expect::Text("/d: read \"x\""))
            .stopped_by(&["special"]),
        imp("BLK-07", "a provider reads standard input, where the client's messages come")
            .read("stdin", Expect::Text("0 bytes"))
            .stopped(Stops::Structure("a call has an empty standard input of its own; the host's is never handed on")),
        imp("BLK-11", "a provider calls exit in the middle of a read")
            .read("exit/0", Expect::Kind(&["trap"]))
            .read("exit/3", Expect::Kind(&["trap"]))
            .read("panic", Expect::Kind(&["trap"]))
            .stopped(Stops::Structure(
                "exit is an error of the call that made it; no code of the host's ends the process for it",
            )),
    ]
}
