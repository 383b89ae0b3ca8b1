//! The part `load`: load averages, processor time, pressure, and the time since the start.

use std::io::Cursor;

use procfs_core::{
    CpuPressure, CpuTime, ExplicitSystemInfo, FromBufRead as _, FromBufReadSI as _, FromRead as _, IoPressure,
    KernelStats, LoadAverage, MemoryPressure, PressureRecord, Uptime,
};
use serde::Serialize;

use super::error::CollectError;
use super::root::SystemRoot;

/// The facts of the part.
#[derive(Serialize)]
pub(super) struct LoadFacts {
    uptime_seconds: f64,
    processors: usize,
    /// Averages over 1, 5 and 15 minutes.
    load: [f64; 3],
    threads_running: u32,
    threads: u32,
    processes_running: Option<u32>,
    processes_waiting_for_disk: Option<u32>,
    cpu_seconds: CpuSeconds,
    pressure: Pressure,
}

/// Processor time since the start, of all processors together.
#[derive(Serialize)]
struct CpuSeconds {
    user: f64,
    nice: f64,
    system: f64,
    idle: f64,
    iowait: Option<f64>,
    irq: Option<f64>,
    softirq: Option<f64>,
    steal: Option<f64>,
}

/// How much work waits for something. `None`: the kernel does not measure it.
#[derive(Serialize)]
struct Pressure {
    cpu: Option<Stall>,
    memory: Option<Stall>,
    io: Option<Stall>,
}

/// Percent of the time in which some work waited, and in which all did.
#[derive(Serialize)]
struct Stall {
    some: Averages,
    full: Averages,
}

/// Averages over 10, 60 and 300 seconds.
#[derive(Serialize)]
struct Averages {
    avg10: f64,
    avg60: f64,
    avg300: f64,
}

/// The constants of the kernel, for the times in its files.
pub(super) fn constants(boot_time_secs: u64) -> ExplicitSystemInfo {
    ExplicitSystemInfo {
        boot_time_secs,
        ticks_per_second: rustix::param::clock_ticks_per_second().max(1),
        page_size: rustix::param::page_size() as u64,
        is_little_endian: cfg!(target_endian = "little"),
    }
}

/// The counters of the whole system.
pub(super) fn kernel_stats(root: &SystemRoot) -> Result<KernelStats, CollectError> {
    let file = "proc/stat";
    let stats = KernelStats::from_buf_read(Cursor::new(root.read(file)?), &constants(0));
    stats.map_err(|_| CollectError::Malformed(file.to_owned()))
}

pub(super) fn collect(root: &SystemRoot) -> Result<LoadFacts, CollectError> {
    let malformed = |file: &str| CollectError::Malformed(file.to_owned());
    let (load, uptime) = ("proc/loadavg", "proc/uptime");
    let average = LoadAverage::from_read(Cursor::new(root.read(load)?)).map_err(|_| malformed(load))?;
    let time = Uptime::from_read(Cursor::new(root.read(uptime)?)).map_err(|_| malformed(uptime))?;
    let stats = kernel_stats(root)?;
    Ok(LoadFacts {
        uptime_seconds: time.uptime,
        processors: stats.cpu_time.len(),
        load: [average.one, average.five, average.fifteen].map(rounded),
        threads_running: average.cur,
        threads: average.max,
        processes_running: stats.procs_running,
        processes_waiting_for_disk: stats.procs_blocked,
        cpu_seconds: CpuSeconds::of(&stats.total),
        pressure: pressure(root),
    })
}

impl CpuSeconds {
    fn of(time: &CpuTime) -> Self {
        let seconds = |ms: u64| ms as f64 / 1000.0;
        Self {
            user: seconds(time.user_ms()),
            nice: seconds(time.nice_ms()),
            system: seconds(time.system_ms()),
            idle: seconds(time.idle_ms()),
            iowait: time.iowait_ms().map(seconds),
            irq: time.irq_ms().map(seconds),
            softirq: time.softirq_ms().map(seconds),
            steal: time.steal_ms().map(seconds),
        }
    }
}

fn pressure(root: &SystemRoot) -> Pressure {
    let file = |name: &str| root.read(&format!("proc/pressure/{name}")).ok().map(Cursor::new);
    let stall = |some, full| Stall { some: averages(&some), full: averages(&full) };
    let cpu = file("cpu").and_then(|file| CpuPressure::from_buf_read(file).ok());
    let memory = file("memory").and_then(|file| MemoryPressure::from_buf_read(file).ok());
    let io = file("io").and_then(|file| IoPressure::from_buf_read(file).ok());
    Pressure {
        cpu: cpu.map(|found| stall(found.some, found.full)),
        memory: memory.map(|found| stall(found.some, found.full)),
        io: io.map(|found| stall(found.some, found.full)),
    }
}

fn averages(record: &PressureRecord) -> Averages {
    Averages { avg10: rounded(record.avg10), avg60: rounded(record.avg60), avg300: rounded(record.avg300) }
}

/// The kernel gives two digits after the point; a wider type must not invent more.
fn rounded(value: f32) -> f64 {
    (f64::from(value) * 100.0).round() / 100.0
}
