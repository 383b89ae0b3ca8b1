//! The commands that the author types while the provider is served. Each line is a command, and it ends before the next
//! line is read. Reads and lists use the same gateway as clients do.

use crate::server::startup;
use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Read as _, Write as _};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use crate::catalog::listing::Listed;
use crate::catalog::{Mount, Snapshot};
use crate::gateway::Gateway;
use crate::gateway::complete::{CompletionError, CompletionRequest};
use crate::model::error::show_bytes;
use crate::model::{Body, Contents, Resource, Template, text};

/// The state of the session. It decides which commands work.
#[derive(Clone)]
pub(super) enum Phase {
    /// The first build is running.
    FirstBuild,
    /// The first build has ended, and no component was ever served.
    NothingServed,
    /// The last good component is served.
    Serving(Arc<Gateway>),
}

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: u64 = 64 << 10;

const HELP: &str = "list                           list all resources
templates                      list all templates
read REFERENCE                 read a resource, such as: read hello.txt   (or its whole URI)
complete TEMPLATE NAME [VALUE [OTHER=VALUE ...]]
                               complete a variable of a template, such as: complete months/{month} month 1
build                          build now
help                           show this help
quit                           quit
";

/// A command that the main loop executes.
pub(super) enum TerminalRequest {
    /// Builds. The sender is answered when the build has failed, or when its components are loaded or refused.
    Build(oneshot::Sender<()>),
    /// Ends the session.
    Quit,
}

/// Reads and executes commands until `quit` or the end of standard input.
pub(super) async fn run(mut phase: watch::Receiver<Phase>, requests: mpsc::Sender<TerminalRequest>) {
    let mut lines = lines();
    while let Some(line) = lines.recv().await {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        match word {
            "" => {}
            "help" | "?" => say(HELP),
            "quit" | "exit" => break,
            "build" => {
                let (done, is_done) = oneshot::channel();
                if requests.send(TerminalRequest::Build(done)).await.is_err() {
                    return;
                }
                let _ = is_done.await;
            }
            "list" | "templates" | "read" | "complete" => {
                // During the first build, commands wait for its end.
                let Ok(now) = phase.wait_for(|phase| !matches!(phase, Phase::FirstBuild)).await.map(|now| now.clone())
                else {
                    return;
                };
                match now {
                    Phase::Serving(gateway) => execute(&gateway, word, rest).await,
                    _ => say_error("nothing is served yet: the build left no component"),
                }
            }
            _ => say_error(&format!("there is no command \"{}\"; type help", text::excerpt(word, 40))),
        }
    }
    let _ = requests.send(TerminalRequest::Quit).await;
}

/// The lines of standard input. A detached thread reads them, because a blocking read cannot be cancelled.
fn lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line) {
                Ok(read) if read > 0 => {}
                _ => return,
            }
            if send.blocking_send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    lines
}

async fn execute(gateway: &Gateway, word: &str, rest: &str) {
    let snapshot = gateway.fully_loaded_snapshot().await;
    match word {
        "list" => list::<Resource>(gateway, &snapshot).await,
        "templates" => list::<Template>(gateway, &snapshot).await,
        "complete" => complete(gateway, &snapshot, rest).await,
        _ => match absolute(&snapshot, rest) {
            Err(why) => say_error(&why),
            // The report of the call, on standard error, has the reason of a failure.
            Ok(uri) => {
                if let Ok((reading, _)) = gateway.read(&startup::caller(), &uri).await {
                    reading.contents.iter().for_each(show);
                }
            }
        },
    }
}

/// The absolute URI of `reference`, which may already be absolute.
fn absolute(snapshot: &Snapshot, reference: &str) -> Result<String, String> {
    if snapshot.route(reference).is_some() {
        return Ok(reference.to_owned());
    }
    match snapshot.mounts() {
        [only] => Ok(format!("{}{reference}", only.base)),
        [] => Err("nothing is served; the reason is in the messages above".to_owned()),
        several => {
            let bases: Vec<&str> = several.iter().map(|mount| mount.base.as_str()).collect();
            Err(format!("several mounts are served; type the whole URI, which begins with one of {}", bases.join(", ")))
        }
    }
}

async fn list<T: Listed + EntryLine>(gateway: &Gateway, snapshot: &Snapshot) {
    let (mut out, mut next, mut pages) = (String::new(), None, 0);
    let mut notices = Vec::new();
    loop {
        let page = gateway.list::<T>(&startup::caller(), next, None).await;
        for (entry, name) in &page.entries {
            entry.write(snapshot.find(name), snapshot.mounts().len() == 1, &mut out);
        }
        for (name, why) in page.notices {
            let notice = format!("! {name}: {why}\n");
            if !notices.contains(&notice) {
                out.push_str(&notice);
                notices.push(notice);
            }
        }
        pages += 1;
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    if out.is_empty() {
        out = format!("no entries on {pages} page(s)\n");
    }
    say(&out);
}

/// An entry of a list that can be shown as one line.
trait EntryLine {
    /// Appends the line to `out`. `is_short`: show the name without the base of `mount`.
    fn write(&self, mount: Option<&Arc<Mount>>, is_short: bool, out: &mut String);
}

fn short<'a>(name: &'a str, mount: Option<&Arc<Mount>>, is_short: bool) -> &'a str {
    mount.filter(|_| is_short).and_then(|mount| name.strip_prefix(mount.base.as_str())).unwrap_or(name)
}

impl EntryLine for Resource {
    fn write(&self, mount: Option<&Arc<Mount>>, is_short: bool, out: &mut String) {
        let _ = write!(out, "{}", short(&self.reference, mount, is_short));
        let size = self.size.map(show_bytes);
        for more in [self.mime_type.as_deref(), size.as_deref(), Some(&self.name), self.title.as_deref()] {
            let _ = more.map(|more| write!(out, "  {more}"));
        }
        out.push('\n');
    }
}

impl EntryLine for Template {
    fn write(&self, mount: Option<&Arc<Mount>>, is_short: bool, out: &mut String) {
        let _ = write!(out, "{}", short(&self.template, mount, is_short));
        for more in [self.mime_type.as_deref(), Some(&self.name), self.description.as_deref()] {
            let _ = more.map(|more| write!(out, "  {more}"));
        }
        out.push('\n');
    }
}

async fn complete(gateway: &Gateway, snapshot: &Snapshot, rest: &str) {
    let mut words = rest.split_whitespace();
    let (Some(template), Some(name)) = (words.next(), words.next()) else {
        return say_error("complete needs a template and the name of one of its variables; type help");
    };
    let value = words.next().unwrap_or_default();
    let resolved =
        words.filter_map(|word| word.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let literal = template.split('{').next().unwrap_or_default();
    let template = match absolute(snapshot, literal) {
        Ok(base) => format!("{base}{}", template.get(literal.len()..).unwrap_or_default()),
        Err(why) => return say_error(&why),
    };
    let request =
        CompletionRequest { template, name: name.to_owned(), value: value.to_owned(), resolved: resolved.collect() };
    match gateway.complete(&startup::caller(), request).await {
        Ok(offer) if offer.values.is_empty() => say("no suggestions\n"),
        Ok(offer) => {
            let mut out: String = offer.values.iter().map(|value| format!("{value}\n")).collect();
            if let Some(total) = offer.total.filter(|total| *total as usize > offer.values.len()) {
                let _ = writeln!(out, "(of {total})");
            }
            say(&out);
        }
        Err(CompletionError::NoTemplate) => say_error("there is no such template; type templates"),
        Err(CompletionError::NoVariable(names)) => {
            say_error(&format!(
                "the template has no variable \"{}\"; it has {}",
                text::excerpt(name, 40),
                names.join(", ")
            ));
        }
        Err(CompletionError::Failed(fault)) => say_error(&fault.to_string()),
    }
}

fn show(contents: &Contents) {
    let kind = contents.mime_type.as_deref().unwrap_or("without a MIME type");
    match &contents.body {
        Body::Blob(bytes) => say(&format!("({} {kind})\n", show_bytes(bytes.len() as u64))),
        // A file or pipe gets the text unchanged.
        Body::Text(text) if !std::io::stdout().is_terminal() => {
            say(text);
            if !text.ends_with('\n') {
                say("\n");
            }
        }
        Body::Text(text) => {
            let mut out = String::with_capacity(text.len() + 1);
            for line in text.lines() {
                out.push_str(&text::line(line));
                out.push('\n');
            }
            say(&out);
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn say_error(why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "belljar: {why}");
}
