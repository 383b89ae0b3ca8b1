//! The short run: every seed of the corpus, and then a fixed number of mutations. All runs use the same mutations.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use mutatis::check::{Check, CheckError};
use mutatis::{Candidates, Context, Mutate};

use crate::{Target, corpus};

/// The seed of the random numbers. It is constant, so a failure occurs in every run. `cargo xtask fuzz` runs longer.
const SEED: u64 = 0x00be_1174;

/// The most changes of one input.
const STEPS: usize = 8;

/// Attempts to make a failing input smaller.
const SHRINKING: usize = 3_000;

/// Runs `target` over its corpus and its mutations.
///
/// # Errors
/// The broken invariant, the input, and the file to which the input was written.
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

/// Runs one input. Returns the message of a panic, which is not printed.
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
    ran.map_err(|payload| panic_message(payload.as_ref()))
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|&text| text.to_owned())).unwrap_or_else(|| "a panic".to_owned())
}

/// Mutates inputs: copies a seed and changes it in some steps. When shrinking, removes bytes.
struct Havoc<'a> {
    seeds: &'a [Vec<u8>],
    target: &'a Target,
}

impl Mutate<Vec<u8>> for Havoc<'_> {
    fn mutate(&mut self, candidates: &mut Candidates<'_>, value: &mut Vec<u8>) -> mutatis::Result<()> {
        if candidates.shrink() {
            // Try to remove halves first, and single bytes last.
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
            4 | 5 if !self.target.dictionary.is_empty() => {
                let word = self.target.dictionary[below(context, self.target.dictionary.len())];
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
