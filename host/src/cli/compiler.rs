//! Compiling in a process of its own: this binary once more, with limits, an empty environment and nothing open but two
//! pipes, and no way to open anything more. Whatever a component does to a compiler, it does it there.

use std::io::{Read, Write};
use std::pin::Pin;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::model::error::show_bytes;
use crate::model::{Guard, text};
use crate::sandbox::{Compile, NotCompiled, compile, read_capped};

/// The hidden verb that the child process runs.
pub(super) const VERB: &str = "compile-component";

/// How much the compiler process yields to others: `nice`.
const NICE: i32 = 5;

/// Processor time of one compilation. A Python interpreter of 18 MiB takes 20 s.
const CPU: Duration = Duration::from_secs(60);

/// Wall time of one compilation: the machine may be busy.
const WALL: Duration = Duration::from_secs(180);

/// Address space of the compiler: several times what the largest component that we know takes.
const MEMORY: u64 = 4 << 30;

/// Bytes of compiled code.
const CODE: u64 = 1 << 30;

/// Bytes of a component that the child takes; the mount's own limit is checked before.
const COMPONENT: u64 = 512 << 20;

/// Bytes of an error message.
const MESSAGE: u64 = 4 << 10;

/// The exit code of a child that was given no component.
const INVALID: u8 = 3;

/// Starts compiler processes.
pub(super) struct Subprocess;

impl Compile for Subprocess {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async { parent(wasm).await.unwrap_or_else(|why| Err(NotCompiled::once(why))) })
    }
}

/// The outer error is the machine's, the inner one the component's.
async fn parent(wasm: Arc<[u8]>) -> Result<Result<Vec<u8>, NotCompiled>, String> {
    // Not the path that this process was started by: that may be another file by now.
    #[cfg(target_os = "linux")]
    let program = std::path::PathBuf::from("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::disallowed_methods, reason = "our own program")]
    let program = std::env::current_exe().map_err(|error| format!("cannot find belljar's own program: {error}"))?;
    #[expect(clippy::disallowed_methods, reason = "our own program, as the compiler process")]
    let mut command = tokio::process::Command::new(program);
    command
        .arg(VERB)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(feature = "unguarded")]
    if !Guard::Compiler.is_on() {
        command.env("BELLJAR_UNGUARDED", Guard::Compiler.name());
    }
    let started = start(command).await.map_err(|error| format!("cannot start the compiler process: {error}"))?;
    let (mut child, _starter) = started;
    let (Some(mut input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("the compiler process has no pipes".to_owned());
    };
    let feed = async move {
        // A child that gives up early closes its end; its exit says why.
        let _ = input.write_all(&wasm).await;
        drop(input);
    };
    let (mut code, mut message) = (Vec::new(), Vec::new());
    let mut output = output.take(CODE + 1);
    let mut errors = errors.take(MESSAGE);
    let work = async {
        let (_, read, _) = tokio::join!(feed, output.read_to_end(&mut code), errors.read_to_end(&mut message));
        read.map_err(|error| format!("the compiler process cannot be read: {error}"))?;
        child.wait().await.map_err(|error| format!("the compiler process cannot be waited for: {error}"))
    };
    let status = tokio::time::timeout(WALL, work)
        .await
        .map_err(|_| format!("compiling it takes more than {}", humantime::format_duration(WALL)))??;
    if code.len() as u64 > CODE {
        return Ok(Err(NotCompiled::always(format!("its compiled code is larger than {}", show_bytes(CODE)))));
    }
    Ok(if status.success() { Ok(code) } else { Err(why(status, &message)) })
}

/// Starts `command` from a thread of its own, which is there until the second value is dropped: the kernel ends a child that
/// asks for it with the very thread that started it, and threads of the runtime come and go.
async fn start(mut command: tokio::process::Command) -> std::io::Result<(tokio::process::Child, mpsc::Sender<()>)> {
    let runtime = tokio::runtime::Handle::current();
    let (started, child) = tokio::sync::oneshot::channel();
    let (starter, is_needed) = mpsc::channel();
    std::thread::Builder::new().name("compiler".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        if started.send(command.spawn()).is_ok() {
            // Ends when the other side is dropped.
            let _ = is_needed.recv();
        }
    })?;
    Ok((child.await.map_err(std::io::Error::other)??, starter))
}

fn why(status: ExitStatus, message: &[u8]) -> NotCompiled {
    let said = text::excerpt(String::from_utf8_lossy(message).trim(), 600);
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        match status.signal() {
            // SIGXCPU, and SIGKILL at the hard limit a second later.
            Some(signal @ (24 | 9)) => {
                let why = format!("compiling it takes more than {} of processor time", humantime::format_duration(CPU));
                // The kernel kills for want of memory too.
                return NotCompiled { why, lasting: signal == 24 };
            }
            // SIGABRT, SIGSEGV: out of memory ends in one of these.
            Some(6 | 11) => {
                return NotCompiled::once(format!(
                    "compiling it takes more than {} of memory, or crashes the compiler",
                    show_bytes(MEMORY)
                ));
            }
            _ => {}
        }
    }
    if said.is_empty() {
        NotCompiled::once(format!("the compiler process failed: {status}"))
    } else if status.code() == Some(INVALID.into()) {
        NotCompiled::always(format!("it is not a valid component: {said}"))
    } else {
        NotCompiled::once(format!("the compiler process failed: {said}"))
    }
}

/// The child: gives up what it does not need, then compiles.
pub(super) fn child() -> ExitCode {
    let limit =
        |resource, value: u64, hard: u64| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(hard) });
    let limits = || {
        limit(Resource::As, MEMORY, MEMORY)
            .and_then(|()| limit(Resource::Cpu, CPU.as_secs(), CPU.as_secs() + 1))
            .and_then(|()| limit(Resource::Core, 0, 0))
            .and_then(|()| limit(Resource::Nofile, 64, 64))
            // Writing to a pipe is not writing to a file.
            .and_then(|()| limit(Resource::Fsize, 0, 0))
    };
    // Nobody waits for the code of a host that was killed.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // Compiling takes every processor that there is; reads go first. Without it they are only slower.
    let _ = rustix::process::setpriority_process(None, NICE);
    let limited = if Guard::Compiler.is_on() { limits() } else { Ok(()) };
    #[cfg(target_os = "linux")]
    let limited = limited.and_then(|()| {
        super::wall::give_up_privately();
        super::wall::raise_without_files();
        rustix::thread::set_no_new_privs(true)
    });
    let fail = |why: &str| {
        let _ = writeln!(std::io::stderr().lock(), "{why}");
        ExitCode::FAILURE
    };
    if let Err(error) = limited {
        return fail(&format!("the compiler process cannot be limited: {error}"));
    }
    let wasm = match read_capped(std::io::stdin().lock().by_ref(), 0, COMPONENT) {
        Ok(wasm) => wasm,
        Err(error) => return fail(&error.to_string()),
    };
    match compile(&wasm) {
        Ok(code) => match std::io::stdout().lock().write_all(&code) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string()),
        },
        Err(why) => {
            fail(&why);
            ExitCode::from(INVALID)
        }
    }
}
