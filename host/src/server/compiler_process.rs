//! Compiles components in a separate process: this program again, with limits, an empty environment and only its three
//! pipes open. It cannot open any file or socket. A component that exploits the compiler is confined to that process.

use std::io::{Read, Write};
use std::pin::Pin;
use std::process::{ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::landlock;
use crate::model::error::show_bytes;
#[cfg(feature = "unguarded")]
use crate::model::guard;
use crate::model::{Guard, text};
use crate::sandbox::{Compiler, NotCompiled, Processors, compile, read_capped};

/// The internal verb that the child process runs.
pub(crate) const VERB: &str = "compile-component";

/// The `nice` value of the compiler process: reads have priority.
const NICE: i32 = 5;

/// The limit of processor time for one compilation. A Python interpreter of 18 MiB takes 20 s.
const CPU: Duration = Duration::from_secs(60);

/// The limit of wall time for one compilation. Longer than [`CPU`], because the machine may be busy.
const WALL: Duration = Duration::from_secs(180);

/// The limit of address space, in bytes: several times the need of the largest known component.
const MEMORY: u64 = 4 << 30;

/// The largest compiled code, in bytes.
const CODE: u64 = 1 << 30;

/// The largest component that the child reads, in bytes. The mount's own limit is checked before.
const COMPONENT: u64 = 512 << 20;

/// The part of an error message that is read, in bytes.
const MESSAGE: u64 = 4 << 10;

/// The exit code of the child for an invalid component.
const INVALID: u8 = 3;

/// The compiler that starts a process for each compilation.
pub(crate) struct CompilerProcess;

impl Compiler for CompilerProcess {
    fn compile(&self, wasm: Arc<[u8]>) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, NotCompiled>> + Send + '_>> {
        Box::pin(async { parent(wasm).await.unwrap_or_else(|error| Err(NotCompiled::transient(error.to_string()))) })
    }
}

/// Why the compiler process gave no result.
#[derive(Debug, thiserror::Error)]
enum ProcessError {
    /// The path of this program is unknown.
    #[cfg(not(target_os = "linux"))]
    #[error("cannot find belljar's own program: {0}")]
    NoProgram(std::io::Error),
    /// The operating system refuses to start it.
    #[error("cannot start the compiler process: {0}")]
    NotStarted(std::io::Error),
    /// It was started without its pipes.
    #[error("the compiler process has no pipes")]
    NoPipes,
    /// Its output cannot be read.
    #[error("cannot read the output of the compiler process: {0}")]
    Unreadable(std::io::Error),
    /// Its exit status cannot be read.
    #[error("cannot wait for the compiler process: {0}")]
    NoStatus(std::io::Error),
    /// It exceeded [`WALL`].
    #[error("compiling it takes more than {}", humantime::format_duration(WALL))]
    TooLong,
}

/// Runs a compilation in a child process. The outer error is a failure of the host, the inner one of the component.
async fn parent(wasm: Arc<[u8]>) -> Result<Result<Vec<u8>, NotCompiled>, ProcessError> {
    // The path from which this process was started may be another file by now, so it is not used.
    #[cfg(target_os = "linux")]
    let program = std::path::PathBuf::from("/proc/self/exe");
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::disallowed_methods, reason = "this program")]
    let program = std::env::current_exe().map_err(ProcessError::NoProgram)?;
    #[expect(clippy::disallowed_methods, reason = "this program, as the compiler process")]
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
    command.env("BELLJAR_UNGUARDED", guard::names_off());
    let (mut child, _starter) = start(command).await.map_err(ProcessError::NotStarted)?;
    let (Some(mut input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ProcessError::NoPipes);
    };
    let feed = async move {
        // A child that fails early closes its end of the pipe; its exit status has the reason.
        let _ = input.write_all(&wasm).await;
        drop(input);
    };
    let (mut code, mut message) = (Vec::new(), Vec::new());
    let mut output = output.take(CODE + 1);
    let mut errors = errors.take(MESSAGE);
    let work = async {
        let (_, read, _) = tokio::join!(feed, output.read_to_end(&mut code), errors.read_to_end(&mut message));
        read.map_err(ProcessError::Unreadable)?;
        child.wait().await.map_err(ProcessError::NoStatus)
    };
    let status = tokio::time::timeout(WALL, work).await.map_err(|_| ProcessError::TooLong)??;
    if code.len() as u64 > CODE {
        return Ok(Err(NotCompiled::permanent(format!("its compiled code is larger than {}", show_bytes(CODE)))));
    }
    Ok(if status.success() { Ok(code) } else { Err(why(status, &message)) })
}

/// Starts `command` from a new thread, which lives until the returned sender is dropped. The child asks the kernel for
/// a signal when its parent dies. The kernel means the thread that started the child, and threads of the runtime may
/// end earlier.
async fn start(mut command: tokio::process::Command) -> std::io::Result<(tokio::process::Child, mpsc::Sender<()>)> {
    let runtime = tokio::runtime::Handle::current();
    let (started, child) = tokio::sync::oneshot::channel();
    let (starter, is_needed) = mpsc::channel();
    std::thread::Builder::new().name("compiler".to_owned()).spawn(move || {
        let _inside = runtime.enter();
        if started.send(command.spawn()).is_ok() {
            // Returns when the sender is dropped.
            let _ = is_needed.recv();
        }
    })?;
    Ok((child.await.map_err(std::io::Error::other)??, starter))
}

fn why(status: ExitStatus, message: &[u8]) -> NotCompiled {
    let message = text::excerpt(String::from_utf8_lossy(message).trim(), 600);
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        match status.signal() {
            // SIGXCPU, and SIGKILL at the hard limit a second later.
            Some(signal @ (24 | 9)) => {
                let why = format!("compiling it takes more than {} of processor time", humantime::format_duration(CPU));
                // SIGKILL may also mean that the kernel ran out of memory, so only SIGXCPU (24) is permanent.
                return NotCompiled { reason: why, is_permanent: signal == 24 };
            }
            // SIGABRT or SIGSEGV: the compiler ends with one of these when it has no memory left.
            Some(6 | 11) => {
                return NotCompiled::transient(format!(
                    "compiling it takes more than {} of memory, or crashes the compiler",
                    show_bytes(MEMORY)
                ));
            }
            _ => {}
        }
    }
    if message.is_empty() {
        NotCompiled::transient(format!("the compiler process failed: {status}"))
    } else if status.code() == Some(INVALID.into()) {
        NotCompiled::permanent(format!("it is not a valid component: {message}"))
    } else {
        NotCompiled::transient(format!("the compiler process failed: {message}"))
    }
}

/// Runs in the child process: drops all privileges that it does not need, then compiles from standard input to standard
/// output.
pub(crate) fn child(processors: Processors) -> ExitCode {
    let limit =
        |resource, value: u64, hard: u64| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(hard) });
    let limits = || {
        limit(Resource::As, MEMORY, MEMORY)
            .and_then(|()| limit(Resource::Cpu, CPU.as_secs(), CPU.as_secs() + 1))
            .and_then(|()| limit(Resource::Core, 0, 0))
            .and_then(|()| limit(Resource::Nofile, 64, 64))
            // No file may be written. The limit does not apply to pipes.
            .and_then(|()| limit(Resource::Fsize, 0, 0))
    };
    // Ends the child if the host is killed.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // The compiler uses all processors, so it runs with a lower priority than reads. A failure only makes reads slower.
    let _ = rustix::process::setpriority_process(None, NICE);
    let limited = if Guard::Compiler.is_on() { limits() } else { Ok(()) };
    #[cfg(target_os = "linux")]
    let limited = limited.and_then(|()| {
        landlock::drop_privileges_and_hide_memory();
        landlock::raise_for_compiler();
        rustix::thread::set_no_new_privs(true)
    });
    let fail = |why: &str| {
        let _ = writeln!(std::io::stderr().lock(), "{why}");
        ExitCode::FAILURE
    };
    if let Err(error) = limited {
        return fail(&format!("cannot limit the compiler process: {error}"));
    }
    let wasm = match read_capped(std::io::stdin().lock().by_ref(), 0, COMPONENT) {
        Ok(wasm) => wasm,
        Err(error) => return fail(&error.to_string()),
    };
    match compile(&wasm, processors) {
        Ok(code) => match std::io::stdout().lock().write_all(&code) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string()),
        },
        Err(why) => {
            fail(&why.to_string());
            ExitCode::from(INVALID)
        }
    }
}
