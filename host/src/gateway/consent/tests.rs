//! The policy without any call: which answers count, and when something is asked.

use super::ticket::MAX_STATE;
use super::*;
use crate::catalog::mount::tests::mount as plain;
use crate::model::Verdict;

const URI: &str = "belljar://m/x";

fn mount(ask: Ask) -> Mount {
    Mount { ask, ..plain("m", "belljar://m/") }
}

fn caller(client: &str) -> Caller {
    Caller { transport: "http", client: Some(client.into()), peer: 0 }
}

fn origin(n: usize) -> Consent {
    Consent { grant: "http", what: format!("https://{n}.example") }
}

fn directory() -> Consent {
    Consent { grant: "fs", what: "/notes".to_owned() }
}

fn denied() -> ReadError {
    ReadError::Denied { message: String::new(), denial: None }
}

fn trail(asks: &[Consent]) -> Trail {
    let mut trail = Trail::default();
    for ask in asks {
        trail.add(ask.grant, &ask.what, Verdict::Denied, || None);
        trail.ask(ask.clone());
    }
    trail
}

fn consents() -> Consents {
    Consents::new(&[1; 32], None)
}

/// What is asked after a call that was given `given` ended in `error`.
fn asked(
    consents: &Consents,
    now: Instant,
    given: &[Consent],
    asks: &[Consent],
    error: &ReadError,
) -> Option<Question> {
    let mut round = Round { may_ask: true, given: given.to_vec(), ..Round::default() };
    consents.ask_at(now, &mut round, &caller("c"), URI, &mount(Ask::Once), error, &trail(asks));
    round.question
}

fn wanted(question: Option<Question>) -> Option<Consent> {
    question.map(|question| question.wanted)
}

#[test]
fn the_same_is_asked_once_a_minute_and_mount() {
    let (consents, now) = (consents(), Instant::now());
    let ask =
        |after: u64, asks: &[Consent]| wanted(asked(&consents, now + Duration::from_secs(after), &[], asks, &denied()));
    assert_eq!(ask(0, &[origin(1)]), Some(origin(1)));
    assert_eq!(ask(1, &[origin(1)]), None);
    assert_eq!(ask(59, &[origin(1)]), None);
    assert_eq!(ask(59, &[origin(1), origin(2)]), Some(origin(2)), "another thing is another question");
    assert_eq!(ask(60, &[origin(1)]), Some(origin(1)));

    let mut round = Round { may_ask: true, ..Round::default() };
    let other = Mount { ask: Ask::Once, ..plain("other", "belljar://other/") };
    consents.ask_at(now + AGAIN, &mut round, &caller("c"), URI, &other, &denied(), &trail(&[origin(1)]));
    assert!(round.question.is_some(), "another mount has questions of its own");
}

#[test]
fn a_provider_that_wants_ever_new_things_runs_out_of_questions() {
    let (consents, now) = (consents(), Instant::now());
    let count = |from: usize, at| {
        (from..from + 100).filter(|n| asked(&consents, at, &[], &[origin(*n)], &denied()).is_some()).count()
    };
    assert_eq!(count(0, now), PER_MOUNT);
    assert_eq!(count(100, now + AGAIN), PER_MOUNT);
}

#[test]
fn a_question_is_for_a_call_that_failed_for_want_of_it() {
    let now = Instant::now();
    let ask = |error: &ReadError, what: Consent| asked(&consents(), now, &[], &[what], error).is_some();
    for error in [ReadError::NotFound, denied()] {
        assert!(ask(&error, directory()) && ask(&error, origin(1)), "{error}");
    }
    for error in [ReadError::Provider("fetch failed".into()), ReadError::Unavailable("upstream".into())] {
        assert!(!ask(&error, directory()) && ask(&error, origin(1)), "{error}");
    }
    for error in [ReadError::Busy(String::new()), ReadError::Trapped(String::new()), ReadError::Cancelled] {
        assert!(!ask(&error, directory()) && !ask(&error, origin(1)), "{error}");
    }
    assert_eq!(asked(&consents(), now, &[], &[], &denied()), None, "nothing that could be allowed");
    assert_eq!(asked(&consents(), now, &[origin(1)], &[origin(1)], &denied()), None, "it had that");
}

#[test]
fn one_request_has_four_questions_at_the_most() {
    let given: Vec<Consent> = (0..ROUNDS).map(origin).collect();
    let ask = |given: &[Consent]| asked(&consents(), Instant::now(), given, &[directory()], &denied()).is_some();
    assert!(ask(&given[..ROUNDS - 1]));
    assert!(!ask(&given));
}

#[test]
fn nobody_is_asked_who_cannot_answer_and_for_no_mount_that_may_not() {
    let consents = consents();
    for (may_ask, ask) in [(false, Ask::Once), (true, Ask::Never)] {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let asking = Asking { can_answer: may_ask, answered: None };
        let mut round = runtime.block_on(consents.begin(asking, &caller("c"), URI, &mount(ask), 0)).unwrap();
        consents.ask(&mut round, &caller("c"), URI, &mount(ask), &denied(), &trail(&[origin(1)]));
        assert_eq!(round.question, None);
    }
}

#[test]
fn an_answer_counts_once_in_time_for_what_was_asked() {
    let (consents, now) = (consents(), Instant::now());
    let state = asked(&consents, now, &[origin(7)], &[directory()], &denied()).unwrap().state;
    let take = |choice, who: &str, uri: &str, mount: &Mount, after: Duration| {
        consents.take(&state, choice, &caller(who), uri, mount, now + after)
    };
    let once = |who: &str, uri: &str, mount: &Mount| take(Choice::Once, who, uri, mount, Duration::ZERO);
    let m = mount(Ask::Once);
    let other_bytes = Mount { digest: Digest::of(b"other"), ask: Ask::Once, ..plain("m", "belljar://m/") };
    let other = Mount { ask: Ask::Once, ..plain("n", "belljar://m/") };
    for (error, why) in [
        (once("c", "belljar://m/y", &m), "another read"),
        (once("d", URI, &m), "another client"),
        (once("c", URI, &other), "another mount"),
        (once("c", URI, &other_bytes), "other bytes"),
        (once("c", URI, &mount(Ask::Never)), "could still ask"),
        (take(Choice::Always, "c", URI, &m, Duration::ZERO), "did not offer"),
        (take(Choice::Once, "c", URI, &m, LIFE + Duration::from_millis(1)), "older than 5 minutes"),
    ] {
        let error = error.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let ticket = take(Choice::Once, "c", URI, &m, LIFE - Duration::from_secs(1)).unwrap();
    assert_eq!((ticket.wanted, ticket.given), (directory(), vec![origin(7)]));
    assert_eq!(once("c", URI, &m), Err("was used already"));
}

#[test]
fn a_state_of_another_process_is_nothing() {
    let state = asked(&consents(), Instant::now(), &[], &[directory()], &denied()).unwrap().state;
    assert!(consents().open(&state).is_ok());
    assert!(Consents::new(&[2; 32], None).open(&state).is_err());
    for at in 0..state.len() {
        let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
        // The last character may carry bits that stand for nothing, and then is refused as such.
        assert!(consents().open(&[&state[..at], other, &state[at + 1..]].concat()).is_err(), "changed at {at}");
        assert!(consents().open(&state[..at]).is_err(), "cut at {at}");
    }
    assert!(consents().open(&"A".repeat(MAX_STATE + 1)).unwrap_err().contains("longer"));
}

/// Keeps what it is told, or nothing.
struct Kept(Mutex<Vec<(String, Consent)>>, bool);

impl Keeper for Kept {
    fn keep(&self, mount: &MountName, _: &Digest, consent: &Consent) -> Result<(), String> {
        self.0.lock().unwrap().push((mount.to_string(), consent.clone()));
        if self.1 { Ok(()) } else { Err("no".to_owned()) }
    }
}

#[tokio::test]
async fn always_is_kept_and_given_to_every_later_call() {
    for works in [true, false] {
        let keeper = Arc::new(Kept(Mutex::default(), works));
        let consents = Consents::new(&[1; 32], Some(Arc::clone(&keeper) as Arc<dyn Keeper>));
        let m = mount(Ask::Persist);
        let mut round = Round { may_ask: true, ..Round::default() };
        consents.ask(&mut round, &caller("c"), URI, &m, &denied(), &trail(&[origin(1)]));
        let question = round.question.unwrap();
        assert!(question.can_last);
        assert!(consents.for_call(&m, &Round::default(), 0).is_empty());
        let asking = Asking { can_answer: true, answered: Some((&question.state, Some(Choice::Always))) };
        let round = consents.begin(asking, &caller("c"), URI, &m, 0).await.unwrap();
        assert_eq!(consents.for_call(&m, &round, 0), [origin(1)], "this call has it either way");
        assert_eq!(*keeper.0.lock().unwrap(), [("m".to_owned(), origin(1))]);
        let later = consents.for_call(&m, &Round::default(), 0);
        assert_eq!(later, if works { vec![origin(1)] } else { Vec::new() });
        assert!(consents.for_call(&m, &Round::default(), 1).is_empty(), "the configuration was read since");
        let other_bytes = Mount { digest: Digest::of(b"other"), ..mount(Ask::Persist) };
        assert!(
            consents.for_call(&other_bytes, &Round::default(), 0).is_empty(),
            "it was these bytes that were trusted"
        );
    }
}

#[tokio::test]
async fn whoever_says_no_is_not_asked_for_the_next_thing_in_the_same_breath() {
    for (choice, goes_on) in
        [(Choice::Once, true), (Choice::Deny, false), (Choice::Decline, false), (Choice::Cancel, false)]
    {
        let (consents, m) = (consents(), mount(Ask::Once));
        let question = asked(&consents, Instant::now(), &[], &[origin(1)], &denied()).unwrap();
        let asking = Asking { can_answer: true, answered: Some((&question.state, Some(choice))) };
        let mut round = consents.begin(asking, &caller("c"), URI, &m, 0).await.unwrap();
        assert_eq!(consents.for_call(&m, &round, 0).len(), usize::from(goes_on), "{choice:?}");
        assert_eq!(round.on_record().answered, Some((origin(1), choice.as_str())));
        consents.ask(&mut round, &caller("c"), URI, &m, &denied(), &trail(&[origin(2)]));
        assert_eq!(round.question.is_some(), goes_on, "{choice:?}");
    }
}

#[test]
fn a_state_that_comes_back_without_an_answer_is_asked_again() {
    let (consents, m, now) = (consents(), mount(Ask::Once), Instant::now());
    let question = asked(&consents, now, &[], &[origin(1)], &denied()).unwrap();
    let again = |uri: &str| consents.again(&question.state, &caller("c"), uri, &m, now);
    assert_eq!(again(URI), Ok(question.clone()), "the same, as often as it comes back");
    assert_eq!(again(URI), Ok(question.clone()));
    assert!(again("belljar://m/y").is_err());
    consents.take(&question.state, Choice::Deny, &caller("c"), URI, &m, now).unwrap();
    assert_eq!(again(URI), Err("was used already"));
}
