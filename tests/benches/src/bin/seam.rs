//! What it would cost to have the sandbox in another process: one round trip of an answer through each way there is, against
//! `Sandbox::call` in this process. `docs/workers.md` has the figures.
//!
//! Rows: the call itself; handing a buffer to another thread and back; a pair of Unix sockets to another process; memory
//! shared with another process, with a futex at each end. An answer is copied as often as it must be: never between
//! threads, into the kernel and out of it through a socket, into the shared memory and out of it there.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a bench ends at the first surprise, and prints")]

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicU64};
use std::time::Instant;

use belljar::admission::budget::Budget;
use belljar::admission::{Admission, Gate};
use belljar::grants::{Ambient, Requested};
use belljar::model::{Digest, Limits, MountName, Operation};
use belljar::sandbox::{Loaded, Options, Sandbox};
use belljar_benches::{Here, Samples, thread_cpu};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex;

/// Bytes of the largest answer.
const LARGEST: usize = 1 << 20;

/// A request for the worker's processor time instead of an answer.
const TIME: u64 = u64::MAX;

/// One way to get an answer of some size; where it is copied, into a buffer that is kept.
trait Way {
    fn answer(&mut self, size: usize);
    /// Processor time that the other side has used.
    fn elsewhere(&mut self) -> u64;
}

/// A thread that hands back what it is handed.
struct Thread {
    there: Sender<Option<Vec<u8>>>,
    back: Receiver<(Vec<u8>, u64)>,
    kept: Vec<u8>,
}

impl Thread {
    fn start() -> Self {
        let (there, requests) = channel::<Option<Vec<u8>>>();
        let (answers, back) = channel();
        std::thread::spawn(move || {
            for request in requests {
                let time = if request.is_none() { thread_cpu() } else { 0 };
                if answers.send((request.unwrap_or_default(), time)).is_err() {
                    return;
                }
            }
        });
        Self { there, back, kept: Vec::new() }
    }
}

impl Way for Thread {
    fn answer(&mut self, size: usize) {
        let mut buffer = std::mem::take(&mut self.kept);
        buffer.resize(size, 1);
        self.there.send(Some(buffer)).expect("the thread runs");
        self.kept = self.back.recv().expect("the thread runs").0;
    }

    fn elsewhere(&mut self) -> u64 {
        self.there.send(None).expect("the thread runs");
        self.back.recv().expect("the thread runs").1
    }
}

/// This program once more, as a worker with `handle` as its standard input.
fn worker(kind: &str, handle: OwnedFd) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg(kind).stdin(Stdio::from(handle)).spawn().expect("a process")
}

/// A process at the other end of a socket pair: eight bytes there, a size and the answer back.
struct Socket {
    stream: UnixStream,
    child: Child,
    kept: Vec<u8>,
}

impl Socket {
    fn start() -> Self {
        let (stream, other) = UnixStream::pair().expect("a pair of sockets");
        Self { stream, child: worker("socket", other.into()), kept: Vec::new() }
    }

    fn ask(&mut self, request: u64) {
        self.stream.write_all(&request.to_le_bytes()).expect("the worker reads");
        let mut size = [0; 8];
        self.stream.read_exact(&mut size).expect("the worker answers");
        self.kept.resize(usize::try_from(u64::from_le_bytes(size)).expect("a size"), 0);
        self.stream.read_exact(&mut self.kept).expect("the worker answers");
    }
}

impl Way for Socket {
    fn answer(&mut self, size: usize) {
        self.ask(size as u64);
    }

    fn elsewhere(&mut self) -> u64 {
        self.ask(TIME);
        u64::from_le_bytes(self.kept.as_slice().try_into().expect("eight bytes"))
    }
}

/// The worker of [`Socket`].
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

/// The head of the shared memory; the answer follows it.
#[repr(C, align(64))]
struct Head {
    /// Whose turn it is: 0 the asker's, 1 the worker's.
    turn: AtomicU32,
    request: AtomicU64,
    answer: AtomicU64,
}

impl Head {
    fn wait(&self, turn: u32) {
        while self.turn.load(Ordering::Acquire) != turn {
            // Whoever is woken for nothing looks again.
            let _ = futex::wait(&self.turn, futex::Flags::empty(), 1 - turn, None);
        }
    }

    fn pass(&self, turn: u32) {
        self.turn.store(turn, Ordering::Release);
        let _ = futex::wake(&self.turn, futex::Flags::empty(), 1);
    }
}

/// Memory shared with another process; each side touches it in its turn only.
struct Memory {
    head: &'static Head,
    bytes: *mut u8,
}

impl Memory {
    fn map(handle: &impl std::os::fd::AsFd) -> Self {
        let size = size_of::<Head>() + LARGEST;
        #[expect(unsafe_code, reason = "memory that two processes share cannot be had otherwise")]
        // SAFETY: a fresh mapping of `size` bytes, which lives until the process ends, is large enough and aligned to a
        // page; zeroes are a valid head, and both sides reach it by atomic operations alone.
        unsafe {
            let at = mmap(std::ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED, handle, 0);
            let at = at.expect("address space").cast::<u8>();
            Self { head: &*at.cast::<Head>(), bytes: at.add(size_of::<Head>()) }
        }
    }

    fn copy_in(&self, from: &[u8]) {
        assert!(from.len() <= LARGEST);
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: within the mapping, by the check above; it is this side's turn, so nobody else touches these bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.bytes, from.len());
        }
    }

    fn copy_out(&self, size: usize, to: &mut Vec<u8>) {
        assert!(size <= LARGEST);
        to.clear();
        #[expect(unsafe_code, reason = "see `map`")]
        // SAFETY: as above.
        unsafe {
            to.extend_from_slice(std::slice::from_raw_parts(self.bytes, size));
        }
    }
}

/// A process with shared memory.
struct Shared {
    memory: Memory,
    child: Child,
    kept: Vec<u8>,
}

impl Shared {
    fn start() -> Self {
        let file = memfd_create("seam", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&file, (size_of::<Head>() + LARGEST) as u64).expect("memory");
        let memory = Memory::map(&file);
        Self { memory, child: worker("shared", file), kept: Vec::new() }
    }

    fn ask(&mut self, request: u64) -> u64 {
        self.memory.head.request.store(request, Ordering::Relaxed);
        self.memory.head.pass(1);
        self.memory.head.wait(0);
        self.memory.head.answer.load(Ordering::Relaxed)
    }
}

impl Way for Shared {
    fn answer(&mut self, size: usize) {
        let size = self.ask(size as u64);
        self.memory.copy_out(usize::try_from(size).expect("a size"), &mut self.kept);
    }

    fn elsewhere(&mut self) -> u64 {
        self.ask(TIME)
    }
}

/// The worker of [`Shared`]; the asker ends it.
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
    loaded: Loaded,
}

impl InProcess {
    fn start() -> Self {
        let wasm =
            std::fs::read(belljar_tests::places::component("guest_sized")).expect("run \"cargo xtask build\" first");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let options =
            Options { calls: 32, cache: None, descriptors: 32 * 1024, key: [0; 32], compiler: Arc::new(Here) };
        let sandbox = Sandbox::new(options).expect("a sandbox");
        let name = MountName::new("sized").expect("a name");
        let held = Requested::default().configure(&Ambient::default()).expect("no grants");
        let digest = Digest::of(&wasm);
        let loaded = runtime.block_on(sandbox.load(&name, wasm.into(), &digest, held)).expect("it loads");
        Self {
            runtime,
            sandbox,
            admission: Admission::new(32, Budget::new(512 << 20)),
            gate: Gate::new(name, Limits::default()),
            loaded,
        }
    }
}

impl Way for InProcess {
    fn answer(&mut self, size: usize) {
        self.runtime.block_on(async {
            let operation = Operation::Read { reference: format!("text/{size}") };
            let permit = self.admission.admit(&self.gate, &operation, None).await.expect("a permit");
            assert!(self.sandbox.call(self.loaded.id(), permit, operation).await.result.is_ok());
        });
    }

    fn elsewhere(&mut self) -> u64 {
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
            let ways: [&mut dyn Way; 4] = [&mut here, &mut thread, &mut socket, &mut shared];
            for (way, (cpu, wall)) in ways.into_iter().zip(&mut figures) {
                let before = way.elsewhere() + thread_cpu();
                let began = Instant::now();
                for _ in 0..operations {
                    way.answer(size);
                }
                let took = began.elapsed();
                let spent = (way.elsewhere() + thread_cpu()).saturating_sub(before);
                // The first rounds warm slots, caches and allocators.
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
