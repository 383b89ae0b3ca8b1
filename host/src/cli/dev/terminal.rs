//! What the author types while the provider is served: each line is a command, and is done before the next is read. Reads and
//! lists go through the gateway that clients go through.

use std::fmt::Write as _;
use std::io::{BufRead, IsTerminal, Read as _, Write as _};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot, watch};

use super::Phase;
use crate::catalog::listing::Listed;
use crate::catalog::{Mount, Snapshot};
use crate::cli::caller;
use crate::gateway::Gateway;
use crate::gateway::completing::{Refusal, Wish};
use crate::model::error::show_bytes;
use crate::model::{Body, Contents, Resource, Template, text};

/// Bytes of a line.
const LINE: u64 = 64 << 10;

const HELP: &str = "list                           every resource
templates                      every template
read REFERENCE                 reads one, such as: read hello.txt   (or its whole URI)
complete TEMPLATE NAME [VALUE [OTHER=VALUE ...]]
                               what a variable could become, such as: complete months/{month} month 1
build                          builds now
help                           this
quit                           leaves
";

/// What the author wants of who runs all this.
pub(super) enum Wanted {
    /// A build; answered when it has ended and what it made is loaded, or cannot be.
    Build(oneshot::Sender<()>),
    /// To leave.
    Quit,
}

/// Reads and does commands, until there are no more.
pub(super) async fn run(mut phase: watch::Receiver<Phase>, wanted: mpsc::Sender<Wanted>) {
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
                if wanted.send(Wanted::Build(done)).await.is_err() {
                    return;
                }
                let _ = is_done.await;
            }
            "list" | "templates" | "read" | "complete" => {
                // Whoever asks while the first build runs waits for it.
                let Ok(now) = phase.wait_for(|phase| !matches!(phase, Phase::First)).await.map(|now| now.clone())
                else {
                    return;
                };
                match now {
                    Phase::Serving(gateway) => obey(&gateway, word, rest).await,
                    _ => say_wrong("nothing is served yet: the build left no component"),
                }
            }
            _ => say_wrong(&format!("there is no command \"{}\"; type help", text::excerpt(word, 40))),
        }
    }
    let _ = wanted.send(Wanted::Quit).await;
}

/// Lines of standard input, read by a thread that nobody waits for.
fn lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            match input.by_ref().take(LINE).read_until(b'\n', &mut line) {
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

async fn obey(gateway: &Gateway, word: &str, rest: &str) {
    let snapshot = gateway.loaded().await;
    match word {
        "list" => list::<Resource>(gateway, &snapshot).await,
        "templates" => list::<Template>(gateway, &snapshot).await,
        "complete" => complete(gateway, &snapshot, rest).await,
        _ => match absolute(&snapshot, rest) {
            Err(why) => say_wrong(&why),
            // Why it failed is in its record, which is shown as every call's.
            Ok(uri) => {
                if let Ok((reading, _)) = gateway.read(&caller(), &uri).await {
                    reading.contents.iter().for_each(show);
                }
            }
        },
    }
}

/// The URI that somebody means by a reference.
fn absolute(snapshot: &Snapshot, reference: &str) -> Result<String, String> {
    if snapshot.route(reference).is_some() {
        return Ok(reference.to_owned());
    }
    match snapshot.mounts() {
        [only] => Ok(format!("{}{reference}", only.base)),
        [] => Err("nothing is served; what is wrong is said above".to_owned()),
        several => {
            let bases: Vec<&str> = several.iter().map(|mount| mount.base.as_str()).collect();
            Err(format!("several mounts are served; give the whole URI, which begins with one of {}", bases.join(", ")))
        }
    }
}

async fn list<T: Listed + Line>(gateway: &Gateway, snapshot: &Snapshot) {
    let (mut out, mut next, mut pages) = (String::new(), None, 0);
    let mut told = Vec::new();
    loop {
        let page = gateway.list::<T>(&caller(), next, None).await;
        for (entry, name) in &page.entries {
            entry.write(snapshot.find(name), snapshot.mounts().len() == 1, &mut out);
        }
        for (name, why) in page.notices {
            let notice = format!("! {name}: {why}\n");
            if !told.contains(&notice) {
                out.push_str(&notice);
                told.push(notice);
            }
        }
        pages += 1;
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    if out.is_empty() {
        out = format!("nothing is listed, in {pages} page(s)\n");
    }
    say(&out);
}

/// An entry of a list, as a line.
trait Line {
    fn write(&self, mount: Option<&Arc<Mount>>, is_short: bool, out: &mut String);
}

fn short<'a>(name: &'a str, mount: Option<&Arc<Mount>>, is_short: bool) -> &'a str {
    mount.filter(|_| is_short).and_then(|mount| name.strip_prefix(mount.base.as_str())).unwrap_or(name)
}

impl Line for Resource {
    fn write(&self, mount: Option<&Arc<Mount>>, is_short: bool, out: &mut String) {
        let _ = write!(out, "{}", short(&self.reference, mount, is_short));
        let size = self.size.map(show_bytes);
        for more in [self.mime_type.as_deref(), size.as_deref(), Some(&self.name), self.title.as_deref()] {
            let _ = more.map(|more| write!(out, "  {more}"));
        }
        out.push('\n');
    }
}

impl Line for Template {
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
        return say_wrong("complete takes a template and the name of its variable; type help");
    };
    let value = words.next().unwrap_or_default();
    let resolved =
        words.filter_map(|word| word.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()));
    let literal = template.split('{').next().unwrap_or_default();
    let template = match absolute(snapshot, literal) {
        Ok(base) => format!("{base}{}", template.get(literal.len()..).unwrap_or_default()),
        Err(why) => return say_wrong(&why),
    };
    let wish = Wish { template, name: name.to_owned(), value: value.to_owned(), resolved: resolved.collect() };
    match gateway.offer(&caller(), wish).await {
        Ok(offer) if offer.values.is_empty() => say("nothing is suggested\n"),
        Ok(offer) => {
            let mut out: String = offer.values.iter().map(|value| format!("{value}\n")).collect();
            if let Some(total) = offer.total.filter(|total| *total as usize > offer.values.len()) {
                let _ = writeln!(out, "(of {total})");
            }
            say(&out);
        }
        Err(Refusal::NoTemplate) => say_wrong("no such template is listed; type templates"),
        Err(Refusal::NoVariable(names)) => {
            say_wrong(&format!(
                "the template has no variable \"{}\"; it has {}",
                text::excerpt(name, 40),
                names.join(", ")
            ));
        }
        Err(Refusal::Failed(fault)) => say_wrong(&fault.to_string()),
    }
}

fn show(contents: &Contents) {
    let kind = contents.mime_type.as_deref().unwrap_or("of no said type");
    match &contents.body {
        Body::Blob(bytes) => say(&format!("({} {kind})\n", show_bytes(bytes.len() as u64))),
        // Into a file or a program it goes as it is.
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

fn say_wrong(why: &str) {
    let _ = writeln!(std::io::stderr().lock(), "belljar: {why}");
}
