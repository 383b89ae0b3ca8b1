//! Runs rows: each alone, all together, or with their guards off. Checks the expectation of each row, and the invariants of
//! all rows.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use belljar_tests::Load;

use crate::expect::cut;
use crate::oracle::{self, WitnessTimes};
use crate::prove;
use crate::row::{Row, Script};
use crate::running_site::{Connection, RowContext, RunningSite, SLACK, Unguarded};

/// The highest allowed 99th percentile of the witness's read times, during any row.
const WITNESS_WORST: Duration = Duration::from_secs(4);

/// The highest allowed ratio of the witness's read times: the 99th percentile during a judged row, divided by the 99th
/// percentile before the row. Reads that are faster than [`WITNESS_QUICK`] pass with any ratio.
const WITNESS_RATIO: f64 = 5.0;

/// See [`WITNESS_RATIO`]. This is the length of five scheduler slices on each of two processors. Ratios of shorter times are
/// not reliable.
const WITNESS_QUICK: Duration = Duration::from_millis(50);

/// How often to run a contained row whose witness or answers were slow. One run that is fast enough passes: a busy machine
/// slows single runs, but a host that delays other mounts slows every run.
const WITNESS_TRIES: u32 = 3;

/// How many rows run at once, each in a process of its own. Most rows wait most of the time.
const SIDE_BY_SIDE: usize = 5;

/// How many rows run at once if all rows share a process.
const AT_ONCE: usize = 8;

/// The outcome of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) id: &'static str,
    /// The attack in words. Rows that are cases of one promise share an id.
    pub(crate) attack: &'static str,
    /// Why the row is red. Empty: the attack was contained.
    pub(crate) wrong: Vec<String>,
    /// A description of the answers that the client saw.
    pub(crate) saw: String,
    pub(crate) took: Duration,
    /// The 99th percentile of the witness's read times during the row, divided by the one before the
    /// row.
    pub(crate) ratio: Option<f64>,
    /// The 99th percentile of the witness's read times during the row.
    pub(crate) witness: Option<Duration>,
    /// A message if the witness was slower than the row allows, or an answer came late. `None` also if another program used
    /// the machine.
    slow: Option<String>,
    /// How many more bytes of memory the process holds after the row than before.
    pub(crate) grown: Option<i64>,
    /// How many more bytes of memory the process held at its peak than before the row.
    pub(crate) peak: Option<u64>,
    /// How long after its deadline the latest answer came.
    pub(crate) late: Duration,
    /// Why this machine cannot run the row.
    pub(crate) skipped: Option<&'static str>,
    /// True if belljar started. A row that did not start proves nothing.
    pub(crate) started: bool,
}

impl Verdict {
    /// True if the attack was contained.
    pub(crate) fn is_contained(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Runs each row in a process of its own, [`SIDE_BY_SIDE`] at a time. Rows that measure run one at a time, after the
/// others. Calls `report` with each verdict.
pub(crate) fn alone(
    rows: &[&Row],
    unguarded: impl Fn(&Row) -> Option<Unguarded> + Sync,
    report: impl Fn(&Verdict) + Sync,
) -> Vec<Verdict> {
    let (measuring, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.measures || row.is_judged());
    let queue = Mutex::new(others);
    let verdicts = Mutex::new(Vec::new());
    let run = |row: &Row| {
        let verdict = run_row(row, unguarded(row).as_ref());
        report(&verdict);
        verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
    };
    thread::scope(|scope| {
        for _ in 0..SIDE_BY_SIDE {
            scope.spawn(|| {
                loop {
                    // The last rows of the table wait longest, for time-outs of connections. They start first.
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    match next {
                        Some(row) => run(row),
                        None => return,
                    }
                }
            });
        }
    });
    measuring.into_iter().for_each(run);
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.sort_by_key(|verdict| rows.iter().position(|row| row.id == verdict.id));
    verdicts
}

/// Runs a row in a process of its own. Repeats a run that was only slow.
fn run_row(row: &Row, unguarded: Option<&Unguarded>) -> Verdict {
    let mut verdict = run_once(row, unguarded);
    for _ in 1..WITNESS_TRIES {
        if verdict.slow.is_none() || !verdict.is_contained() || prove::is_running() {
            break;
        }
        verdict = run_once(row, unguarded);
    }
    verdict.wrong.extend(verdict.slow.take());
    verdict
}

fn run_once(row: &Row, unguarded: Option<&Unguarded>) -> Verdict {
    let began = Instant::now();
    let mut verdict = Verdict { id: row.id, attack: row.attack, ..Verdict::default() };
    if row.needs.is_some() {
        verdict.skipped = row.needs;
        return verdict;
    }
    let whole =
        catch_panic(|| RunningSite::new(&[row], unguarded).map(|running| run_on_site(row, running, &mut verdict)));
    match whole {
        Ok(Ok(())) => {}
        Ok(Err(why)) | Err(why) => verdict.wrong.push(why),
    }
    verdict.took = began.elapsed();
    verdict
}

/// Runs the row on its site, and checks the invariants that hold for all rows.
fn run_on_site(row: &Row, mut running: RunningSite, verdict: &mut Verdict) {
    verdict.started = true;
    let load = Load::begin();
    let (outcome, late, witness_times) = during(&running, || {
        let context = RowContext::new(row, &running);
        let outcome = catch_panic(|| play(&context)).flatten();
        (outcome, context.latest())
    });
    match outcome {
        Ok(saw) => verdict.saw = saw,
        Err(why) => verdict.wrong.push(why),
    }
    verdict.late = late;
    // After a successful attack the process may be busy for ever, so its invariants are not checked.
    if verdict.wrong.is_empty() {
        let is_shared = load.is_shared();
        invariants(&mut running, &witness_times, (row.keeps, row.peak), verdict);
        let ratio = verdict.ratio.filter(|_| row.is_judged());
        verdict.slow = verdict.witness.and_then(|witness| slow(witness, ratio)).or_else(|| late_by(late, SLACK));
        verdict.slow.take_if(|_| is_shared && !prove::is_running());
    }
}

/// A message if an answer came more than `most` after its deadline.
fn late_by(late: Duration, most: Duration) -> Option<String> {
    (late > most).then(|| format!("an answer came {late:?} after its deadline"))
}

/// A message if the witness was too slow: above [`WITNESS_WORST`], or above [`WITNESS_RATIO`] if there is a `ratio`.
fn slow(witness: Duration, ratio: Option<f64>) -> Option<String> {
    if witness > WITNESS_WORST {
        return Some(format!("the witness took {witness:?}"));
    }
    let ratio = ratio.filter(|ratio| *ratio > WITNESS_RATIO && witness > WITNESS_QUICK)?;
    Some(format!(
        "the witness took {witness:.1?}, {ratio:.1}x of the time before the row; {WITNESS_RATIO}x or {WITNESS_QUICK:?} are allowed"
    ))
}

/// Runs `act`, and reads the witness at the same time.
fn during<T, L>(running: &RunningSite, act: impl FnOnce() -> (T, L)) -> (T, L, WitnessTimes) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let witness = scope.spawn(|| match running.connection {
            Connection::None => Ok(WitnessTimes::default()),
            _ => catch_panic(|| running.witness(&stop, 5)),
        });
        let (done, more) = act();
        stop.store(true, Ordering::Relaxed);
        let witness_times = witness.join().unwrap_or_else(|_| Err("the witness's thread ended".to_owned()));
        let broken = |why| WitnessTimes { wrong: vec![format!("the witness: {why}")], ..WitnessTimes::default() };
        (done, more, witness_times.unwrap_or_else(broken))
    })
}

/// Runs a row's script. Returns a description of the answers, or the reason why the row is red.
fn play(context: &RowContext<'_>) -> Result<String, String> {
    match &context.row.script {
        Script::Act(act) => Ok(act(context)),
        Script::Reads(reads) => {
            let mut seen: Vec<String> = Vec::new();
            for (reference, expect) in reads {
                let answer = context.read(reference);
                let saw =
                    expect.judge(&answer, &context.name("")).map_err(|why| format!("{}: {why}", cut(reference)))?;
                if !seen.contains(&saw) {
                    seen.push(saw);
                }
            }
            Ok(seen.join(", "))
        }
    }
}

/// Checks the invariants of every row.
fn invariants(
    running: &mut RunningSite,
    witness_times: &WitnessTimes,
    (keeps, peak): (u64, u64),
    verdict: &mut Verdict,
) {
    let wrong = &mut verdict.wrong;
    wrong.extend(running.canaries.touched());
    let secret = running.canaries.secret.clone();
    if let Connection::None = running.connection {
        wrong.extend(oracle::leaks(&running.site, "", &secret));
        return;
    }
    let process = running.process();
    wrong.extend(oracle::health(process));
    wrong.extend(oracle::leaks(&running.site, &process.stderr(), &secret));
    if let Connection::Stdio(line) = &running.connection {
        wrong.extend(line.violations());
    }
    wrong.extend(witness_times.wrong.iter().cloned());
    let worst = witness_times.percentile(99);
    let ratio = worst.as_secs_f64() / running.alone.percentile(99).as_secs_f64().max(1e-6);
    verdict.ratio = Some(ratio);
    verdict.witness = Some(worst);
    let most = running.before.peak(process);
    if most > peak {
        wrong.push(format!(
            "the process held up to {} MiB more than before, {} MiB are allowed",
            most >> 20,
            peak >> 20
        ));
    }
    verdict.peak = Some(most);
    if wrong.is_empty() {
        let (after, over) = running.before.settle(running.process(), keeps);
        verdict.grown = Some(after.memory.cast_signed() - running.before.memory.cast_signed());
        verdict.wrong.extend(over);
    }
}

/// Runs all these rows in one process, in this order, several at a time.
pub(crate) fn together(rows: &[&Row], report: impl Fn(&Verdict) + Sync) -> Vec<Verdict> {
    let began = Instant::now();
    let mut whole = Verdict { id: "together", ..Verdict::default() };
    let running = match catch_panic(|| RunningSite::new(rows, None)).flatten() {
        Ok(running) => running,
        Err(why) => {
            whole.wrong.push(why);
            return vec![whole];
        }
    };
    let mut running = running;
    let queue = Mutex::new(rows.iter().copied().collect::<VecDeque<_>>());
    let verdicts = Mutex::new(Vec::new());
    let load = Load::begin();
    let ((), late, witness_times) = during(&running, || {
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(row) = next else { return };
                        let began = Instant::now();
                        let context = RowContext::new(row, &running);
                        let mut verdict = Verdict { id: row.id, attack: row.attack, ..Verdict::default() };
                        match catch_panic(|| play(&context)).flatten() {
                            Ok(saw) => verdict.saw = saw,
                            Err(why) => verdict.wrong.push(why),
                        }
                        verdict.late = context.latest();
                        verdict.took = began.elapsed();
                        report(&verdict);
                        verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
                    }
                });
            }
        });
        let latest = |all: &Vec<Verdict>| all.iter().map(|verdict| verdict.late).max().unwrap_or_default();
        ((), latest(&verdicts.lock().unwrap_or_else(PoisonError::into_inner)))
    });
    whole.late = late;
    let is_shared = load.is_shared();
    let keeps = rows.iter().map(|row| row.keeps).sum::<u64>().min(256 << 20);
    // 900 MiB: the memory of all concurrent calls, of their answers, and of the allocator itself.
    invariants(&mut running, &witness_times, (keeps, 900 << 20), &mut whole);
    let slow = whole.witness.and_then(|witness| slow(witness, None)).or_else(|| late_by(late, SLACK * 4));
    whole.wrong.extend(slow.filter(|_| !is_shared));
    whole.took = began.elapsed();
    whole.saw = format!("{} rows in one process", rows.len());
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.push(whole);
    verdicts
}

/// Runs a function that may panic. Returns the message of the panic as an error.
pub(crate) fn catch_panic<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_message(&*panic))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
