//! Runs rows: each alone, all together, or with their guards off; and judges each by its own expectations and by what
//! holds for all.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::expect::cut;
use crate::oracle::{self, Fared};
use crate::row::{Row, Script};
use crate::scene::{Peer, SLACK, Scene, Stage, Unguarded};

/// How long the witness may take at worst, whatever goes on: a bound that means "it is answered", on a busy machine.
const WITNESS_WORST: Duration = Duration::from_secs(4);

/// How many times slower the witness's slowest hundredth may be beside a row that is judged by it; what is faster than
/// [`WITNESS_QUICK`] passes whatever it was before.
const WITNESS_TIMES: f64 = 5.0;

/// See [`WITNESS_TIMES`]. Five scheduler slices for each of two processors: below it a ratio says little.
const WITNESS_QUICK: Duration = Duration::from_millis(50);

/// How often a row is run whose witness was slow and that is contained otherwise. The quickest run counts: a machine that is
/// busy with something else slows one run, a host that lets its neighbours wait slows all of them.
const WITNESS_TRIES: u32 = 3;

/// Rows that are in flight at once when all share a process.
const AT_ONCE: usize = 8;

/// What came of a row.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) id: &'static str,
    /// What is tried: rows that are cases of one promise have one id.
    pub(crate) attack: &'static str,
    /// Why it is red; nothing means that the attack was contained.
    pub(crate) wrong: Vec<String>,
    /// What the client saw.
    pub(crate) saw: String,
    pub(crate) took: Duration,
    /// The witness's slow reads during the row, as a multiple of its slow reads alone.
    pub(crate) ratio: Option<f64>,
    /// The slowest hundredth of the witness's reads during the row.
    pub(crate) witness: Option<Duration>,
    /// That the witness was slower than the row allows, in words.
    slow: Option<String>,
    /// Bytes of memory that were held more afterwards.
    pub(crate) grown: Option<i64>,
    /// Bytes of memory that were held more at the most.
    pub(crate) peak: Option<u64>,
    /// How much later than its deadline the latest answer came.
    pub(crate) late: Duration,
    /// Why it was not run here.
    pub(crate) skipped: Option<&'static str>,
    /// Whether belljar ran at all: what did not start shows nothing.
    pub(crate) started: bool,
}

impl Verdict {
    /// Whether the attack was contained.
    pub(crate) fn is_contained(&self) -> bool {
        self.wrong.is_empty()
    }
}

/// Runs each row in a process of its own, two at a time, those that measure by themselves; tells each as it ends.
pub(crate) fn alone(
    rows: &[&Row],
    unguarded: impl Fn(&Row) -> Option<Unguarded> + Sync,
    tell: impl Fn(&Verdict) + Sync,
) -> Vec<Verdict> {
    let (measuring, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.measures || row.is_judged());
    let queue = Mutex::new(VecDeque::from(others));
    let verdicts = Mutex::new(Vec::new());
    let run = |row: &Row| {
        let verdict = one(row, unguarded(row).as_ref());
        tell(&verdict);
        verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
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

fn one(row: &Row, unguarded: Option<&Unguarded>) -> Verdict {
    let mut verdict = once(row, unguarded);
    for _ in 1..WITNESS_TRIES {
        if verdict.slow.is_none() || !verdict.is_contained() {
            break;
        }
        verdict = once(row, unguarded);
    }
    verdict.wrong.extend(verdict.slow.take());
    verdict
}

fn once(row: &Row, unguarded: Option<&Unguarded>) -> Verdict {
    let began = Instant::now();
    let mut verdict = Verdict { id: row.id, attack: row.attack, ..Verdict::default() };
    if row.needs.is_some() {
        verdict.skipped = row.needs;
        return verdict;
    }
    let whole = quietly(|| Stage::new(&[row], unguarded).map(|stage| judged(row, stage, &mut verdict)));
    match whole {
        Ok(Ok(())) => {}
        Ok(Err(why)) | Err(why) => verdict.wrong.push(why),
    }
    verdict.took = began.elapsed();
    verdict
}

/// Runs the row on its stage, and judges what holds for all.
fn judged(row: &Row, mut stage: Stage, verdict: &mut Verdict) {
    verdict.started = true;
    let (outcome, late, fared) = during(&stage, || {
        let scene = Scene::new(row, &stage);
        let outcome = quietly(|| play(&scene)).flatten();
        (outcome, scene.latest())
    });
    match outcome {
        Ok(saw) => verdict.saw = saw,
        Err(why) => verdict.wrong.push(why),
    }
    verdict.late = late;
    // A process whose attack came through may be busy with it for ever: nothing more is to be learnt from it.
    if verdict.wrong.is_empty() {
        invariants(&mut stage, &fared, (row.keeps, row.peak), verdict);
        verdict.slow = verdict.witness.filter(|_| row.is_judged()).and_then(|witness| slow(witness, verdict.ratio));
    }
}

/// Why the witness was too slow beside a row that is judged by it.
fn slow(witness: Duration, ratio: Option<f64>) -> Option<String> {
    let ratio = ratio.filter(|ratio| *ratio > WITNESS_TIMES && witness > WITNESS_QUICK)?;
    Some(format!(
        "the witness took {witness:.1?}, {ratio:.1}x of alone; {WITNESS_TIMES}x or {WITNESS_QUICK:?} are allowed"
    ))
}

/// Does something while the witness is read.
fn during<T, L>(stage: &Stage, act: impl FnOnce() -> (T, L)) -> (T, L, Fared) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let witness = scope.spawn(|| match stage.peer {
            Peer::None => Ok(Fared::default()),
            _ => quietly(|| stage.witness(&stop, 5)),
        });
        let (done, more) = act();
        stop.store(true, Ordering::Relaxed);
        let fared = witness.join().unwrap_or_else(|_| Err("the witness's thread ended".to_owned()));
        let broken = |why| Fared { wrong: vec![format!("the witness: {why}")], ..Fared::default() };
        (done, more, fared.unwrap_or_else(broken))
    })
}

/// Runs a row's script: what the client saw, or why it is red.
fn play(scene: &Scene<'_>) -> Result<String, String> {
    match &scene.row.script {
        Script::Act(act) => Ok(act(scene)),
        Script::Reads(reads) => {
            let mut seen: Vec<String> = Vec::new();
            for (reference, expect) in reads {
                let answer = scene.read(reference);
                let saw = expect.judge(&answer, &scene.name("")).map_err(|why| format!("{}: {why}", cut(reference)))?;
                if !seen.contains(&saw) {
                    seen.push(saw);
                }
            }
            Ok(seen.join(", "))
        }
    }
}

/// What holds for every row, I1 to I8.
fn invariants(stage: &mut Stage, fared: &Fared, (keeps, peak): (u64, u64), verdict: &mut Verdict) {
    let wrong = &mut verdict.wrong;
    wrong.extend(stage.canaries.touched());
    let secret = stage.canaries.secret.clone();
    if let Peer::None = stage.peer {
        wrong.extend(oracle::leaks(&stage.site, "", &secret));
        return;
    }
    let process = stage.process();
    wrong.extend(oracle::health(process));
    wrong.extend(oracle::leaks(&stage.site, &process.stderr(), &secret));
    if let Peer::Line(line) = &stage.peer {
        wrong.extend(line.violations());
    }
    wrong.extend(fared.wrong.iter().cloned());
    let worst = fared.percentile(99);
    if worst > WITNESS_WORST {
        wrong.push(format!("the witness took {worst:?}"));
    }
    let ratio = worst.as_secs_f64() / stage.alone.percentile(99).as_secs_f64().max(1e-6);
    verdict.ratio = Some(ratio);
    verdict.witness = Some(worst);
    let most = if stage.together { SLACK * 4 } else { SLACK };
    if verdict.late > most {
        wrong.push(format!("an answer came {:?} after its deadline", verdict.late));
    }
    let most = process.peak_memory().saturating_sub(stage.before.memory);
    if most > peak {
        wrong.push(format!("{} MiB more were held at the most, {} MiB are allowed", most >> 20, peak >> 20));
    }
    verdict.peak = Some(most);
    if wrong.is_empty() {
        let (after, over) = stage.before.settle(stage.process(), keeps);
        verdict.grown = Some(after.memory.cast_signed() - stage.before.memory.cast_signed());
        verdict.wrong.extend(over);
    }
}

/// Runs all these rows in one process, in this order, several at a time.
pub(crate) fn together(rows: &[&Row], tell: impl Fn(&Verdict) + Sync) -> Vec<Verdict> {
    let began = Instant::now();
    let mut whole = Verdict { id: "together", ..Verdict::default() };
    let stage = match quietly(|| Stage::new(rows, None)).flatten() {
        Ok(stage) => stage,
        Err(why) => {
            whole.wrong.push(why);
            return vec![whole];
        }
    };
    let mut stage = stage;
    let queue = Mutex::new(rows.iter().copied().collect::<VecDeque<_>>());
    let verdicts = Mutex::new(Vec::new());
    let ((), late, fared) = during(&stage, || {
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some(row) = next else { return };
                        let began = Instant::now();
                        let scene = Scene::new(row, &stage);
                        let mut verdict = Verdict { id: row.id, attack: row.attack, ..Verdict::default() };
                        match quietly(|| play(&scene)).flatten() {
                            Ok(saw) => verdict.saw = saw,
                            Err(why) => verdict.wrong.push(why),
                        }
                        verdict.late = scene.latest();
                        verdict.took = began.elapsed();
                        tell(&verdict);
                        verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
                    }
                });
            }
        });
        let latest = |all: &Vec<Verdict>| all.iter().map(|verdict| verdict.late).max().unwrap_or_default();
        ((), latest(&verdicts.lock().unwrap_or_else(PoisonError::into_inner)))
    });
    whole.late = late;
    let keeps = rows.iter().map(|row| row.keeps).sum::<u64>().min(256 << 20);
    // What all calls may take together, what their answers may, and the allocator's own: R5.
    invariants(&mut stage, &fared, (keeps, 900 << 20), &mut whole);
    whole.took = began.elapsed();
    whole.saw = format!("{} rows in one process", rows.len());
    let mut verdicts = verdicts.into_inner().unwrap_or_else(PoisonError::into_inner);
    verdicts.push(whole);
    verdicts
}

/// Runs something that may panic, without a word on the terminal: the panic's message is the error.
pub(crate) fn quietly<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| said(&*panic))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "a panic without words".to_owned())
}
