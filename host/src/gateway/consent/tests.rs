//! Tests of the consent policy without any call: the answers that are valid, and the questions that are asked.

use futures_util::FutureExt as _;

use super::question_state::MAX_STATE;
use super::*;
use crate::catalog::mount::tests::mount as plain;
use crate::model::DecisionKind;
use crate::policy::{Evidence, authenticate};

const URI: &str = "belljar://m/x";

fn read(uri: &str) -> AskedRequest<'_> {
    AskedRequest::read(uri)
}

fn mount(ask: Ask) -> Mount {
    Mount { ask, ..plain("m", "belljar://m/") }
}

fn caller(client: &str) -> Caller {
    Caller { client: Some(client.into()), ..Caller::new(authenticate(Evidence::Loopback), "http") }
}

fn origin(n: usize) -> Consent {
    Consent { grant: "http".into(), target: format!("https://{n}.example") }
}

fn directory() -> Consent {
    Consent { grant: "fs".into(), target: "/notes".to_owned() }
}

fn denied() -> ReadError {
    ReadError::Denied { message: String::new(), denial: None }
}

fn decisions(asks: &[Consent]) -> DecisionLog {
    let mut decisions = DecisionLog::default();
    for ask in asks {
        decisions.add(ask.grant.clone(), &ask.target, DecisionKind::Denied, || None);
        decisions.request_consent(ask.clone());
    }
    decisions
}

fn consents() -> ConsentManager {
    ConsentManager::new(RequestStates::new(&[1; 32], None), None)
}

/// The question after a call that had the consents `given` and ended in `error`.
fn asked(
    consents: &ConsentManager,
    now: Instant,
    given: &[Consent],
    asks: &[Consent],
    error: &ReadError,
) -> Option<ConsentQuestion> {
    let mut consent = ConsentState { may_ask: true, given: given.to_vec(), ..ConsentState::default() };
    consents.set_question_at(now, &mut consent, &caller("c"), &read(URI), &mount(Ask::Once), error, &decisions(asks));
    consent.question
}

fn wanted(question: Option<ConsentQuestion>) -> Option<Consent> {
    question.map(|question| question.wanted)
}

#[test]
fn the_same_question_is_asked_once_a_minute_for_each_mount() {
    let (consents, now) = (consents(), Instant::now());
    let ask =
        |after: u64, asks: &[Consent]| wanted(asked(&consents, now + Duration::from_secs(after), &[], asks, &denied()));
    assert_eq!(ask(0, &[origin(1)]), Some(origin(1)));
    assert_eq!(ask(1, &[origin(1)]), None);
    assert_eq!(ask(59, &[origin(1)]), None);
    assert_eq!(ask(59, &[origin(1), origin(2)]), Some(origin(2)), "another thing is another question");
    assert_eq!(ask(60, &[origin(1)]), Some(origin(1)));

    let mut consent = ConsentState { may_ask: true, ..ConsentState::default() };
    let other = Mount { ask: Ask::Once, ..plain("other", "belljar://other/") };
    consents.set_question_at(
        now + CONSENT_INTERVAL.get(),
        &mut consent,
        &caller("c"),
        &read(URI),
        &other,
        &denied(),
        &decisions(&[origin(1)]),
    );
    assert!(consent.question.is_some(), "another mount has its own questions");
}

#[test]
fn the_questions_of_one_provider_are_bounded() {
    let (consents, now) = (consents(), Instant::now());
    let count = |from: usize, at| {
        (from..from + 100).filter(|n| asked(&consents, at, &[], &[origin(*n)], &denied()).is_some()).count()
    };
    assert_eq!(count(0, now), CONSENTS_PER_MOUNT.get());
    assert_eq!(count(100, now + CONSENT_INTERVAL.get()), CONSENTS_PER_MOUNT.get());
}

#[test]
fn only_a_call_that_may_have_failed_for_lack_of_a_grant_leads_to_a_question() {
    let now = Instant::now();
    let ask = |error: &ReadError, wanted: Consent| asked(&consents(), now, &[], &[wanted], error).is_some();
    for error in [ReadError::NotFound, denied()] {
        assert!(ask(&error, directory()) && ask(&error, origin(1)), "{error}");
    }
    for error in [ReadError::ProviderFailed("fetch failed".into()), ReadError::Unavailable("upstream".into())] {
        assert!(!ask(&error, directory()) && ask(&error, origin(1)), "{error}");
    }
    for error in [ReadError::busy(""), ReadError::Trapped(String::new()), ReadError::Cancelled] {
        assert!(!ask(&error, directory()) && !ask(&error, origin(1)), "{error}");
    }
    assert_eq!(asked(&consents(), now, &[], &[], &denied()), None, "nothing that could be allowed");
    assert_eq!(asked(&consents(), now, &[origin(1)], &[origin(1)], &denied()), None, "it had that");
}

#[test]
fn one_request_has_at_most_four_questions() {
    let given: Vec<Consent> = (0..MAX_QUESTIONS).map(origin).collect();
    let ask = |given: &[Consent]| asked(&consents(), Instant::now(), given, &[directory()], &denied()).is_some();
    assert!(ask(&given[..MAX_QUESTIONS - 1]));
    assert!(!ask(&given));
}

#[test]
fn no_question_without_a_person_or_for_a_mount_that_may_not_ask() {
    let consents = consents();
    for (may_ask, ask) in [(false, Ask::Once), (true, Ask::Never)] {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let input = ConsentInput { can_answer: may_ask, answered: None };
        let mut consent = runtime.block_on(consents.begin(input, &caller("c"), &read(URI), &mount(ask), 0)).unwrap();
        consents.set_question(&mut consent, &caller("c"), &read(URI), &mount(ask), &denied(), &decisions(&[origin(1)]));
        assert_eq!(consent.question, None);
    }
}

#[test]
fn an_answer_is_valid_once_in_time_and_for_its_question_only() {
    let (consents, now) = (consents(), Instant::now());
    let state = asked(&consents, now, &[origin(7)], &[directory()], &denied()).unwrap().state;
    let redeem = |choice, who: &str, uri: &str, mount: &Mount, after: Duration| {
        let (caller, request) = (caller(who), read(uri));
        consents.redeem(&state, choice, &caller, &request, mount, now + after).now_or_never().unwrap()
    };
    let once = |who: &str, uri: &str, mount: &Mount| redeem(ConsentAnswer::Once, who, uri, mount, Duration::ZERO);
    let m = mount(Ask::Once);
    let other_bytes = Mount { digest: Digest::of(b"other"), ask: Ask::Once, ..plain("m", "belljar://m/") };
    let other = Mount { ask: Ask::Once, ..plain("n", "belljar://m/") };
    for (error, why) in [
        (once("c", "belljar://m/y", &m), QuestionStateError::OtherRequest),
        (once("d", URI, &m), QuestionStateError::OtherClient),
        (once("c", URI, &other), QuestionStateError::OtherMount),
        (once("c", URI, &other_bytes), QuestionStateError::OtherBytes),
        (once("c", URI, &mount(Ask::Never)), QuestionStateError::AskingDisabled),
        (redeem(ConsentAnswer::Always, "c", URI, &m, Duration::ZERO), QuestionStateError::NotOffered),
        (
            redeem(ConsentAnswer::Once, "c", URI, &m, ANSWER_TIME + Duration::from_millis(1)),
            QuestionStateError::Expired,
        ),
    ] {
        assert_eq!(error, Err(why.into()));
    }
    let opened = redeem(ConsentAnswer::Once, "c", URI, &m, ANSWER_TIME - Duration::from_secs(1)).unwrap();
    assert_eq!((opened.wanted, opened.given), (directory(), vec![origin(7)]));
    assert_eq!(once("c", URI, &m), Err(QuestionStateError::Used.into()));
}

#[test]
fn an_answer_about_a_call_is_for_its_name_and_its_arguments_only() {
    let (consents, now, m) = (consents(), Instant::now(), mount(Ask::Once));
    let call = |tool: &'static str, arguments| AskedRequest::Call { tool: tool.into(), arguments: [arguments; 32] };
    let mut consent = ConsentState { may_ask: true, ..ConsentState::default() };
    let asked = [origin(1)];
    consents.set_question_at(now, &mut consent, &caller("c"), &call("m_send", 1), &m, &denied(), &decisions(&asked));
    let state = consent.question.unwrap().state;
    let redeem = |request: &AskedRequest<'_>| {
        let caller = caller("c");
        let redeemed = consents.redeem(&state, ConsentAnswer::Once, &caller, request, &m, now);
        redeemed.now_or_never().unwrap().map(|opened| opened.wanted)
    };
    let prompt = AskedRequest::Prompt { prompt: "m_send".into(), arguments: [1; 32] };
    for other in [call("m_send", 2), call("m_other", 1), prompt, read(URI)] {
        assert_eq!(redeem(&other), Err(QuestionStateError::OtherRequest.into()), "{other}");
    }
    assert_eq!(redeem(&call("m_send", 1)), Ok(origin(1)));
}

#[test]
fn a_state_of_another_process_is_refused() {
    let state = asked(&consents(), Instant::now(), &[], &[directory()], &denied()).unwrap().state;
    assert!(consents().open(&state).is_ok());
    assert!(ConsentManager::new(RequestStates::new(&[2; 32], None), None).open(&state).is_err());
    for at in 0..state.len() {
        let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
        // The last character may carry unused bits. Then the state is refused for that reason.
        assert!(consents().open(&[&state[..at], other, &state[at + 1..]].concat()).is_err(), "changed at {at}");
        assert!(consents().open(&state[..at]).is_err(), "cut at {at}");
    }
    assert!(consents().open(&"A".repeat(MAX_STATE + 1)).err() == Some(QuestionStateError::TooLong));
}

/// Stores each consent, or fails.
struct RecordingWriter(Mutex<Vec<(String, Consent)>>, bool);

impl ConsentWriter for RecordingWriter {
    fn persist(&self, mount: &MountName, _: &Digest, consent: &Consent) -> Result<(), PersistError> {
        self.0.lock().unwrap().push((mount.to_string(), consent.clone()));
        if self.1 { Ok(()) } else { Err(PersistError("no".to_owned())) }
    }
}

#[tokio::test]
async fn permanent_consent_applies_to_every_later_call() {
    for works in [true, false] {
        let writer = Arc::new(RecordingWriter(Mutex::default(), works));
        let consents = ConsentManager::new(
            RequestStates::new(&[1; 32], None),
            Some(Arc::clone(&writer) as Arc<dyn ConsentWriter>),
        );
        let m = mount(Ask::Persist);
        let mut consent = ConsentState { may_ask: true, ..ConsentState::default() };
        consents.set_question(&mut consent, &caller("c"), &read(URI), &m, &denied(), &decisions(&[origin(1)]));
        let question = consent.question.unwrap();
        assert!(question.can_be_permanent);
        assert!(consents.for_call(&caller("c").principal, &m, &ConsentState::default(), 0).is_empty());
        let input = ConsentInput { can_answer: true, answered: Some((&question.state, Some(ConsentAnswer::Always))) };
        let consent = consents.begin(input, &caller("c"), &read(URI), &m, 0).await.unwrap();
        assert_eq!(
            consents.for_call(&caller("c").principal, &m, &consent, 0),
            [origin(1)],
            "this call has it either way"
        );
        assert_eq!(*writer.0.lock().unwrap(), [("m".to_owned(), origin(1))]);
        let later = consents.for_call(&caller("c").principal, &m, &ConsentState::default(), 0);
        assert_eq!(later, if works { vec![origin(1)] } else { Vec::new() });
        assert!(
            consents.for_call(&caller("c").principal, &m, &ConsentState::default(), 1).is_empty(),
            "the configuration was read since"
        );
        let other_bytes = Mount { digest: Digest::of(b"other"), ..mount(Ask::Persist) };
        assert!(
            consents.for_call(&caller("c").principal, &other_bytes, &ConsentState::default(), 0).is_empty(),
            "consent was given to other bytes"
        );
    }
}

#[tokio::test]
async fn after_a_refusal_the_same_request_asks_no_further_question() {
    for (choice, goes_on) in [
        (ConsentAnswer::Once, true),
        (ConsentAnswer::Deny, false),
        (ConsentAnswer::Decline, false),
        (ConsentAnswer::Cancel, false),
    ] {
        let (consents, m) = (consents(), mount(Ask::Once));
        let question = asked(&consents, Instant::now(), &[], &[origin(1)], &denied()).unwrap();
        let input = ConsentInput { can_answer: true, answered: Some((&question.state, Some(choice))) };
        let mut consent = consents.begin(input, &caller("c"), &read(URI), &m, 0).await.unwrap();
        assert_eq!(
            consents.for_call(&caller("c").principal, &m, &consent, 0).len(),
            usize::from(goes_on),
            "{choice:?}"
        );
        assert_eq!(consent.consented().answered, Some((origin(1), choice.as_str())));
        consents.set_question(&mut consent, &caller("c"), &read(URI), &m, &denied(), &decisions(&[origin(2)]));
        assert_eq!(consent.question.is_some(), goes_on, "{choice:?}");
    }
}

#[test]
fn a_state_without_an_answer_repeats_the_question() {
    let (consents, m, now) = (consents(), mount(Ask::Once), Instant::now());
    let question = asked(&consents, now, &[], &[origin(1)], &denied()).unwrap();
    let again = |uri: &str| consents.unanswered(&question.state, &caller("c"), &read(uri), &m, now);
    assert_eq!(again(URI), Ok(question.clone()), "the same, as often as it comes back");
    assert_eq!(again(URI), Ok(question.clone()));
    assert!(again("belljar://m/y").is_err());
    let (caller, request) = (caller("c"), read(URI));
    let redeemed = consents.redeem(&question.state, ConsentAnswer::Deny, &caller, &request, &m, now);
    redeemed.now_or_never().unwrap().unwrap();
    assert_eq!(again(URI), Err(QuestionStateError::Used));
}
