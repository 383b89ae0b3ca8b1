//! Measures the cost of a sandbox in another process: one round trip of an answer through each mechanism, compared with
//! `Sandbox::call` in this process. `docs/design/workers.md` has the figures.
//!
//! The rows are: the call itself; a buffer that goes to another thread and back; a pair of Unix sockets to another
//! process; and memory shared with another process, with a futex at each end. An answer is copied only where necessary.
//! Threads copy nothing. A socket copies into the kernel and out of it. Shared memory needs a copy into the memory and
//! a copy out of it.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first error, and prints")]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use belljar::grants::CallRecord;
use belljar::grants::{Ambient, GrantConfig};
use belljar::interfaces::Request;
use belljar::interfaces::resources;
use belljar::limits::CallOrigin;
use belljar::limits::memory_budget::MemoryBudget;
use belljar::limits::{Admission, Gate};
use belljar::model::{Digest, Limits, MountName};
use belljar::policy::{Action, Evidence, Policy, Target, authenticate};
use belljar::sandbox::{CallSpec, LoadedMount, Sandbox};
use belljar_benches::{Samples, sandbox_options, thread_cpu};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex;

/// Bytes of the largest answer.
const LARGEST: usize = 1 << 20;

/// A request for the worker's processor time instead of an answer of some size.
const TIME: u64 = u64::MAX;

/// A mechanism that returns an answer.
trait Mechanism {
    /// Gets an answer of `size` bytes. Copies go into a buffer that is used again.
    fn answer(&mut self, size: usize);
    /// The processor time of the other thread or process, in nanoseconds.
    fn other_side_cpu(&mut self) -> u64;
}

/// A thread that sends each received buffer back.
struct Thread {
    /// Sends a buffer, or `None` to ask for the processor time.
    requests: Sender<Option<Vec<u8>>>,
    answers: Receiver<(Vec<u8>, u64)>,
    buffer: Vec<u8>,
}

impl Thread {
    fn start() -> Self {
        let (requests, received) = channel::<Option<Vec<u8>>>();
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for request in received {
                let time = if request.is_none() { thread_cpu() } else { 0 };
                if sender.send((request.unwrap_or_default(), time)).is_err() {
                    return;
                }
            }
        });
        Self { requests, answers, buffer: Vec::new() }
    }
}

impl Mechanism for Thread {
    fn answer(&mut self, size: usize) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(size, 1);
        self.requests.send(Some(buffer)).expect("the thread runs");
        self.buffer = self.answers.recv().expect("the thread runs").0;
    }

    fn other_side_cpu(&mut self) -> u64 {
        self.requests.send(None).expect("the thread runs");
        self.answers.recv().expect("the thread runs").1
    }
}

/// Starts this program as a worker process of this kind. `handle` becomes its standard input.
fn worker(kind: &str, handle: OwnedFd) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(kind).stdin(Stdio::from(handle)).spawn().expect("a process")
}

/// A process at the other end of a socket pair. A request is the size as eight bytes; an answer is the size and the
/// bytes.
struct Socket {
    stream: UnixStream,
    child: Child,
    buffer: Vec<u8>,
}

impl Socket {
    fn start() -> Self {
        let (stream, other) = UnixStream::pair().expect("a pair of sockets");
        Self { stream, child: worker("socket", other.into()), buffer: Vec::new() }
    }

    fn ask(&mut self, request: u64) {
        self.stream.write_all(&request.to_le_bytes()).expect("the worker reads");
        let mut size = [0; 8];
        self.stream.read_exact(&mut size).expect("the worker answers");
        self.buffer.resize(usize::try_from(u64::from_le_bytes(size)).expect("a size"), 0);
        self.stream.read_exact(&mut self.buffer).expect("the worker answers");
    }
}

impl Mechanism for Socket {
    fn answer(&mut self, size: usize) {
        self.ask(size as u64);
    }

    fn other_side_cpu(&mut self) -> u64 {
        self.ask(TIME);
        u64::from_le_bytes(self.buffer.as_slice().try_into().expect("eight bytes"))
    }
}

/// Runs the worker process of [`Socket`].
fn serve_socket() {
    use std::os::fd::AsFd as _;
    let mut stream = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().expect("a handle"));
    let template = vec![1; LARGEST];
    let mut request = [0; 8];
    while stream.read_exact(&mut request).is_ok() {
        let time = thread_cpu().to_le_bytes();
        let answer = match u64::from_le_bytes(request) {
            TIME => time.as_slice(),
            size => template.get(..usize::try_from(size).expect("a size")).expect("not too large"),
        };
        let sent = stream.write_all(&(answer.len() as u64).to_le_bytes()).and_then(|()| stream.write_all(answer));
        if sent.is_err() {
            return;
        }
    }
}

/// The head of the shared memory. The bytes of the answer follow.
#[repr(C, align(64))]
struct Head {
    /// The side that may use the memory: 0 for this process, 1 for the worker.
    turn: AtomicU32,
    request: AtomicU64,
    answer: AtomicU64,
}

impl Head {
    fn wait(&self, turn: u32) {
        while self.turn.load(Ordering::Acquire) != turn {
            // After a spurious wake-up, check the turn again.
            let _ = futex::wait(&self.turn, futex::Flags::empty(), 1 - turn, None);
        }
    }

    fn pass(&self, turn: u32) {
        self.turn.store(turn, Ordering::Release);
        let _ = futex::wake(&self.turn, futex::Flags::empty(), 1);
    }
}

/// Memory shared with another process. Each side uses the memory only while [`Head::turn`] has its number.
struct Memory {
    head: &'static Head,
    bytes: *mut u8,
}

impl Memory {
    fn map(handle: &impl std::os::fd::AsFd) -> Self {
        let size = size_of::<Head>() + LARGEST;
        #[expect(unsafe_code, reason = "only `mmap` gives memory that two processes share")]
        // SAFETY: the new mapping has `size` bytes, is aligned to a page, and lives until the process ends. Zeroes are
        // a valid `Head`, and both sides access the head only by atomic operations.
        unsafe {
            let at = mmap(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, handle, 0);
            let at = at.expect("address space").cast::<u8>();
            Self { head: &*at.cast::<Head>(), bytes: at.add(size_of::<Head>()) }
        }
    }

    fn copy_in(&self, from: &[u8]) {
        assert!(from.len() <= LARGEST);
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: by the check above, the bytes are in the mapping. The turn belongs to this side, so the other side
        // does not access the bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.bytes, from.len());
        }
    }

    fn copy_out(&self, size: usize, to: &mut Vec<u8>) {
        assert!(size <= LARGEST);
        to.clear();
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: see `copy_in`.
        unsafe {
            to.extend_from_slice(std::slice::from_raw_parts(self.bytes, size));
        }
    }
}

/// A process with shared memory.
struct Shared {
    memory: Memory,
    child: Child,
    buffer: Vec<u8>,
}

impl Shared {
    fn start() -> Self {
        let file = memfd_create("seam", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&file, (size_of::<Head>() + LARGEST) as u64).expect("memory");
        let memory = Memory::map(&file);
        Self { memory, child: worker("shared", file), buffer: Vec::new() }
    }

    fn ask(&mut self, request: u64) -> u64 {
        self.memory.head.request.store(request, Ordering::Relaxed);
        self.memory.head.pass(1);
        self.memory.head.wait(0);
        self.memory.head.answer.load(Ordering::Relaxed)
    }
}

impl Mechanism for Shared {
    fn answer(&mut self, size: usize) {
        let size = self.ask(size as u64);
        self.memory.copy_out(usize::try_from(size).expect("a size"), &mut self.buffer);
    }

    fn other_side_cpu(&mut self) -> u64 {
        self.ask(TIME)
    }
}

/// Runs the worker process of [`Shared`]. The first process kills it at the end.
fn serve_shared() {
    let memory = Memory::map(&std::io::stdin());
    let template = vec![1; LARGEST];
    loop {
        memory.head.wait(1);
        let answer = match memory.head.request.load(Ordering::Relaxed) {
            TIME => thread_cpu(),
            size => {
                memory.copy_in(template.get(..usize::try_from(size).expect("a size")).expect("not too large"));
                size
            }
        };
        memory.head.answer.store(answer, Ordering::Relaxed);
        memory.head.pass(0);
    }
}

/// The sandbox in this process.
struct InProcess {
    runtime: tokio::runtime::Runtime,
    sandbox: Sandbox,
    admission: Admission,
    gate: Gate,
    loaded: LoadedMount,
}

impl InProcess {
    fn start() -> Self {
        let wasm =
            std::fs::read(belljar_tests::places::component("guest_sized")).expect("run \"cargo xtask build\" first");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let sandbox = Sandbox::new(sandbox_options()).expect("a sandbox");
        let name = MountName::new("sized").expect("a name");
        let held = GrantConfig::default().configure(&Ambient::default()).expect("no grants");
        let digest = Digest::of(&wasm);
        let loaded = runtime.block_on(sandbox.load(&name, wasm.into(), &digest, held)).expect("a loaded mount");
        Self {
            runtime,
            sandbox,
            admission: Admission::new(32, MemoryBudget::new(512 << 20)),
            gate: Gate::new(name, Limits::default()),
            loaded,
        }
    }
}

impl Mechanism for InProcess {
    fn answer(&mut self, size: usize) {
        self.runtime.block_on(async {
            let request = Request::from(resources::Read { reference: format!("text/{size}") });
            let name = MountName::new("sized").expect("a name");
            let principal = authenticate(Evidence::OwnUser);
            let target = Target { mount: &name, base: "belljar://sized/", reference: request.reference() };
            let now = std::time::SystemTime::now();
            let access = Policy::default().authorize(&principal, Action::Read, target, now).expect("an access");
            let permit = self.admission.admit(access, &self.gate, CallOrigin::default(), &request, None).await;
            let permit = permit.expect("a permit");
            let spec = CallSpec::new(&permit, self.loaded.id(), request);
            assert!(self.sandbox.call(spec, permit, &CallRecord::default()).await.result.is_ok());
        });
    }

    fn other_side_cpu(&mut self) -> u64 {
        0
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("socket") => return serve_socket(),
        Some("shared") => return serve_shared(),
        _ => {}
    }
    let rounds: u32 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(41);
    let (mut here, mut thread) = (InProcess::start(), Thread::start());
    let (mut socket, mut shared) = (Socket::start(), Shared::start());
    for (label, size, operations) in [("1 KiB", 1024, 400u32), ("1 MiB", LARGEST, 40)] {
        let mut figures: [(Samples, Samples); 4] = Default::default();
        for round in 0..rounds + 3 {
            let all: [&mut dyn Mechanism; 4] = [&mut here, &mut thread, &mut socket, &mut shared];
            for (mechanism, (cpu, wall)) in all.into_iter().zip(&mut figures) {
                let before = mechanism.other_side_cpu() + thread_cpu();
                let began = Instant::now();
                for _ in 0..operations {
                    mechanism.answer(size);
                }
                let took = began.elapsed();
                let spent = (mechanism.other_side_cpu() + thread_cpu()).saturating_sub(before);
                // Drop the first rounds. They warm up slots, caches and allocators.
                if round >= 3 {
                    cpu.add(spent, operations);
                    wall.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), operations);
                }
            }
        }
        println!(
            "\n| {label} | us CPU, both sides | middle half | us until the answer | CPU, to the call |\n|---|---|---|---|---|"
        );
        let base = figures.first().map_or(f64::NAN, |(cpu, _)| cpu.median());
        let names = [
            "`Sandbox::call`, in process",
            "hand-off to a thread and back",
            "socket pair to a process",
            "shared memory and futex to a process",
        ];
        for (name, (cpu, wall)) in names.into_iter().zip(&figures) {
            println!(
                "| {name} | {:.1} | {:.1} - {:.1} | {:.1} | {:.2}x |",
                cpu.median(),
                cpu.quantile(0.25),
                cpu.quantile(0.75),
                wall.median(),
                cpu.median() / base
            );
        }
    }
    for mut child in [socket.child, shared.child] {
        child.kill().and_then(|()| child.wait()).expect("a worker that ends");
    }
}
