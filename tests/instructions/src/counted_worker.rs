//! Counts the part of a worker in a read. This program is the worker, and valgrind counts it. It starts itself again as the
//! front, which valgrind does not follow.
//!
//! The front reads, and says which read is counted. Each of its orders waits until the worker waits for the next call. A count
//! begins when a call first asks for the time, and ends when the call after it does. So it has all that one call costs, with
//! the work after the answer, which makes an instance for the next call.
//!
//! The component is compiled here, and its code goes to the front first: valgrind's processor lacks instructions that the
//! machine has.

use std::ffi::CStr;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use belljar::sandbox::{WorkerProcess, WorkerStarter};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::count::{self, Order};
use crate::parts::{self, ApartWorker};
use crate::{BEFORE, TIMES, WARM, wires, worker};

/// The option with which this program counts itself as a worker.
pub(crate) const ARGUMENT: &str = "counted-worker";

/// The option with which this program is the front of a counted worker.
pub(crate) const FRONT: &str = "front";

/// The path.
const TITLE: &CStr = c"in the worker, 1 KiB";

/// The order to begin a count at the next call.
const BEGIN: u8 = b'b';

/// The order to end it at the call after that.
const END: u8 = b'e';

/// The system calls in which a thread waits for events, as the kernel numbers them: `epoll_wait` and `epoll_pwait`.
const WAITS: [&str; 2] = ["232", "281"];

/// Serves a front of its own until it closes its socket, and prints the counts. `arguments` are those of this program, and `code`
/// is the compiled component.
pub(crate) fn count(arguments: &[String], code: &[u8]) {
    let (socket, of_front) = UnixStream::pair().expect("sockets");
    let (mut orders, to_orders) = UnixStream::pair().expect("sockets");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(arguments.iter().filter(|one| *one != ARGUMENT)).arg(FRONT);
    command.stdin(OwnedFd::from(of_front)).stdout(OwnedFd::from(to_orders));
    let mut front = command.spawn().expect("a process");
    drop(command);
    orders.write_all(&code.len().to_le_bytes()).expect("a front that reads");
    orders.write_all(code).expect("a front that reads");
    let passing = thread::spawn(move || pass_on(orders));
    count::start();
    worker::serve_front(socket);
    assert!(front.wait().expect("a process").success(), "the front failed");
    passing.join().expect("no panic");
    crate::print(TITLE.to_str().expect("a name"), &count::ordered_runs());
}

/// Passes the orders of the front on, each when the worker waits.
fn pass_on(mut orders: UnixStream) {
    let mut order = [0];
    while orders.read_exact(&mut order).is_ok() {
        while !first_thread_waits() {
            thread::yield_now();
        }
        count::order(if order == [BEGIN] { Order::Begin } else { Order::End(TITLE) });
        orders.write_all(&order).expect("a front that waits");
    }
}

/// True if the first thread of this program waits for events.
fn first_thread_waits() -> bool {
    let path = format!("/proc/self/task/{}/syscall", std::process::id());
    let call = std::fs::read_to_string(path).expect("a kernel that names the system call of a thread");
    call.split(' ').next().is_some_and(|number| WAITS.contains(&number))
}

/// Reads as the front of the worker at the other end of standard input, and gives orders over standard output. Each call carries
/// so many bytes more.
pub(crate) async fn read_as_front(wasm: &[u8], planted: usize) {
    use_one_processor();
    let mut orders = worker::socket(io::stdout()).expect("a socket");
    let mut length = [0; size_of::<usize>()];
    orders.read_exact(&mut length).expect("a length");
    let mut code = vec![0; usize::from_le_bytes(length)];
    orders.read_exact(&mut code).expect("compiled code");
    let worker = ApartWorker { starter: Arc::new(OtherEnd), variable: planted };
    let parts = parts::parts(wasm, code, worker).await;
    let mut stdio = wires::Stdio::reading(&parts.handler, "belljar://apart/text/1024", 1024, false).await;
    let mut order = |order| {
        orders.write_all(&[order]).expect("a worker");
        orders.read_exact(&mut [0]).expect("a worker that obeys");
    };
    for _ in 0..WARM {
        stdio.read().await;
    }
    for _ in 0..TIMES {
        for _ in 0..BEFORE {
            stdio.read().await;
        }
        order(BEGIN);
        stdio.read().await;
        order(END);
        stdio.read().await;
    }
    std::process::exit(0);
}

/// A worker has a thread for each processor of its front. All work of the counted worker must be in one thread.
fn use_one_processor() {
    let all = sched_getaffinity(None).expect("the processors of this process");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|processor| all.is_set(*processor)).expect("a processor"));
    sched_setaffinity(None, &one).expect("a processor of this process");
}

/// The process that started this one is the worker.
struct OtherEnd;

impl WorkerStarter for OtherEnd {
    fn start(&self) -> io::Result<(Arc<dyn WorkerProcess>, UnixStream)> {
        Ok((Arc::new(Self), worker::socket(io::stdin())?))
    }
}

impl WorkerProcess for OtherEnd {
    fn cpu_time(&self) -> Duration {
        Duration::ZERO
    }

    fn kill(&self) {
        // It ends when this process does.
    }

    fn wait(&self) -> String {
        "it closed its socket".to_owned()
    }
}
