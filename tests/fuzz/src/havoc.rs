//! The short run: every seed as it is, then a fixed number of mutations of them, always the same ones.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use mutatis::check::{Check, CheckError};
use mutatis::{Candidates, Context, Mutate};

use crate::{Target, corpus};

/// The same in every run: a failure is found again. A longer look is `cargo xtask fuzz`.
const SEED: u64 = 0x00be_1174;

/// Changes of one input at the most.
const STEPS: usize = 8;

/// Attempts to make a failing input smaller.
const SHRINKING: usize = 3_000;

/// Runs `target` over its corpus and its mutations.
///
/// # Errors
/// What broke, on which input, and where that was written.
pub fn short(target: &Target) -> Result<(), String> {
    let seeds = corpus::seeds(target);
    for (name, seed) in &seeds {
        judge(target, seed).map_err(|why| format!("corpus {name}: {}", corpus::report(target, seed, &why)))?;
    }
    let seeds: Vec<_> = seeds.into_iter().map(|(_, seed)| seed).collect();
    let mutator = Havoc { seeds: &seeds, target };
    let mut check = Check::new();
    check.iters(target.iterations).max_shrink_iters(SHRINKING).seed(SEED);
    match check.run_with(mutator, seeds.clone(), |input| judge(target, input)) {
        Ok(()) => Ok(()),
        Err(CheckError::Failed(failure)) => Err(corpus::report(target, &failure.value, &failure.message)),
        Err(other) => Err(format!("{}: {other}", target.name)),
    }
}

/// One input; a panic is an answer here, not noise on the terminal.
fn judge(target: &Target, input: &[u8]) -> Result<(), String> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
    QUIET.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    QUIET.set(false);
    ran.map_err(|payload| said(payload.as_ref()))
}

fn said(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_else(|| "a panic".to_owned())
}

/// Changes bytes: some steps away from a seed, and when shrinking, fewer of them.
struct Havoc<'a> {
    seeds: &'a [Vec<u8>],
    target: &'a Target,
}

impl Mutate<Vec<u8>> for Havoc<'_> {
    fn mutate(&mut self, candidates: &mut Candidates<'_>, value: &mut Vec<u8>) -> mutatis::Result<()> {
        if candidates.shrink() {
            // Halves first, single bytes last.
            return candidates.mutation_group(if value.is_empty() { 0 } else { 12 }, |context, which| {
                let size = (value.len() >> (which + 1)).max(1);
                let at = below(context, value.len() - size + 1);
                value.drain(at..at + size);
                Ok(())
            });
        }
        candidates.mutation(|context| {
            value.clone_from(&self.seeds[below(context, self.seeds.len())]);
            for _ in 0..=below(context, STEPS) {
                self.step(context, value);
            }
            value.truncate(self.target.longest);
            Ok(())
        })
    }
}

impl Havoc<'_> {
    fn step(&self, context: &mut Context, value: &mut Vec<u8>) {
        let at = below(context, value.len() + 1);
        let span = at..(at + below(context, 16)).min(value.len());
        match below(context, 8) {
            0 => value.insert(at, context.rng().gen_u8()),
            1 => drop(value.drain(span)),
            2 => {
                let copy = value[span].to_vec();
                let to = below(context, value.len() + 1);
                value.splice(to..to, copy);
            }
            3 => {
                let other = &self.seeds[below(context, self.seeds.len())];
                let from = below(context, other.len() + 1);
                let upto = (from + below(context, 64)).min(other.len());
                value.splice(span, other[from..upto].iter().copied());
            }
            4 | 5 if !self.target.words.is_empty() => {
                let word = self.target.words[below(context, self.target.words.len())];
                value.splice(span, word.bytes());
            }
            6 if at < value.len() => {
                const EDGES: [u8; 10] = [0, 1, 0x7f, 0x80, 0xff, b'%', b'/', b'.', b'"', b'\n'];
                value[at] = EDGES[below(context, EDGES.len())];
            }
            _ if at < value.len() => value[at] ^= 1 << below(context, 8),
            _ => value.push(context.rng().gen_u8()),
        }
    }
}

/// A number below `limit`, which is not 0.
fn below(context: &mut Context, limit: usize) -> usize {
    context.rng().gen_index(limit).unwrap_or_default()
}
