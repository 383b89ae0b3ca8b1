//! Compares decisions with an evaluator that shares no code with them: patterns are matched by recursion over texts, and
//! schedules by walking back minute by minute.

use std::time::{Duration, SystemTime};

use super::super::*;
use crate::model::MountName;

/// The rule sets that are compared.
const SETS: u64 = 10_000;

/// The mounts, with their bases.
const MOUNTS: [(&str, &str); 4] =
    [("notes", "belljar://notes/"), ("logs", "belljar://logs/"), ("urn", "urn:x:"), ("test", "test://")];

/// The principals: kind, issuer, subject, groups, scopes.
type Person = (PrincipalKind, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const PEOPLE: [Person; 9] = [
    (PrincipalKind::Local, "", "local", &[], &[]),
    (PrincipalKind::Anonymous, "", "anonymous", &[], &[]),
    (PrincipalKind::Key, "", "ci", &["dev"], &["s1"]),
    (PrincipalKind::Key, "", "local", &[], &["s1", "s2"]),
    (PrincipalKind::Token, "https://i", "alice", &["dev", "ops"], &[]),
    (PrincipalKind::Token, "https://i", "bob", &["ops"], &["s2"]),
    (PrincipalKind::Token, "https://j", "alice", &[], &["s1"]),
    (PrincipalKind::Token, "https://j", "local", &[], &[]),
    (PrincipalKind::Belljar, "", "belljar", &[], &[]),
];

const ACTIONS: [(&str, Action); 7] = [
    ("list", Action::List),
    ("read", Action::Read),
    ("search", Action::Search),
    ("complete", Action::Complete),
    ("subscribe", Action::Watch),
    ("call", Action::Call),
    ("prompt", Action::Prompt),
];

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// Random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Each with this probability.
    fn some<T: Copy>(&mut self, of: &[T], percent: usize) -> Vec<T> {
        of.iter().copied().filter(|_| self.is(percent)).collect()
    }
}

/// A rule in the evaluator's own form.
#[derive(Clone, Debug, Default)]
struct PlainRule {
    is_denying: bool,
    users: Vec<&'static str>,
    issuers: Vec<&'static str>,
    groups: Vec<&'static str>,
    scopes: Vec<&'static str>,
    keys: Vec<&'static str>,
    /// `None`: everything.
    patterns: Option<Vec<String>>,
    /// For a rule of `[auth.scopes]`.
    mounts: Option<Vec<&'static str>>,
    actions: Vec<&'static str>,
    /// Days, begin and end in minutes, zone.
    window: Option<(Vec<usize>, usize, usize, &'static str)>,
}

fn pattern(random: &mut Random) -> String {
    loop {
        let start = [
            "belljar://notes/",
            "belljar://notes/",
            "belljar://notes/",
            "belljar://logs/",
            "belljar://",
            "belljar://*/",
            "**",
            "urn:x:",
            "test://",
            "*://",
        ];
        let mut text = random.one(&start).to_owned();
        for _ in 0..random.below(5) {
            text += random.one(&["a", "a", "b", "/", "/", "*", "**", "**", "%61", "%2F", "?", "//", "x", "%62/"]);
        }
        if text.parse::<UriPattern>().is_ok() {
            return text;
        }
    }
}

fn reference(random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..random.below(6) {
        text += random.one(&["a", "a", "a", "b", "/", "/", "/", "x", "%61", "%2F", "?", "%2f", "%62", "//", "%2561"]);
    }
    text
}

fn rule(random: &mut Random) -> PlainRule {
    let mut rule = PlainRule { is_denying: random.is(30), ..PlainRule::default() };
    if random.is(10) {
        rule.is_denying = false;
        rule.scopes = vec![random.one(&["s1", "s2", "s3"])];
        rule.mounts = Some(random.some(&MOUNTS.map(|(name, _)| name), 40)).filter(|mounts| !mounts.is_empty());
        rule.actions = random.some(&ACTIONS.map(|(word, _)| word), 60);
        return rule;
    }
    match random.below(8) {
        0 | 1 => {}
        2 => rule.users = random.some(&["local", "anonymous", "alice", "bob"], 50),
        3 => rule.keys = random.some(&["ci", "local"], 60),
        4 => rule.groups = random.some(&["dev", "ops", "none"], 50),
        5 => rule.scopes = random.some(&["s1", "s2", "s3", "s1 s2", "s2 s3"], 40),
        6 => {
            rule.users = random.some(&["alice", "local"], 70);
            rule.issuers = random.some(&["https://i", "https://j"], 60);
        }
        _ => {
            rule.groups = random.some(&["dev", "ops"], 50);
            rule.scopes = random.some(&["s1", "s2 s3", "s3"], 50);
        }
    }
    if random.is(85) {
        rule.patterns = Some((0..=random.below(3)).map(|_| pattern(random)).collect());
    }
    rule.actions = if random.is(50) {
        ACTIONS.map(|(word, _)| word).to_vec()
    } else {
        random.some(&ACTIONS.map(|(word, _)| word), 50)
    };
    if random.is(25) {
        let (begin, end) = (random.below(24) * 60, random.below(96) * 15);
        if begin != end {
            let days = random.some(&[0, 1, 2, 3, 4, 5, 6], 60);
            let zone = random.one(&["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]);
            rule.window = Some((days, begin, end, zone)).filter(|(days, ..)| !days.is_empty());
        }
    }
    rule
}

/// The rule as policy has it.
fn real(rule: &PlainRule) -> Rule {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let number = RuleNumber { number: 1, line: None };
    let time = |minute: usize| format!("{:02}:{:02}", minute / 60, minute % 60);
    Rule {
        origin: if rule.is_denying { RuleOrigin::Deny(number) } else { RuleOrigin::Allow(number) },
        who: Who {
            users: texts(&rule.users),
            issuers: texts(&rule.issuers),
            groups: texts(&rule.groups),
            scopes: rule.scopes.iter().map(|text| ScopeSet::new(text).unwrap()).collect(),
            keys: texts(&rule.keys),
        },
        resources: match (&rule.patterns, &rule.mounts) {
            (Some(patterns), _) => RuleResources::Patterns(patterns.iter().map(|text| text.parse().unwrap()).collect()),
            (None, Some(mounts)) => {
                RuleResources::Mounts(mounts.iter().map(|name| MountName::new(name).unwrap()).collect())
            }
            (None, None) => RuleResources::All,
        },
        actions: rule.actions.iter().map(|word| word.parse::<Action>().unwrap()).collect(),
        schedule: rule.window.as_ref().map(|(days, begin, end, zone)| {
            let days = days.iter().map(|day| DAYS[*day]).collect::<Vec<_>>().join(",");
            format!("{days} {}-{} {zone}", time(*begin), time(*end)).parse().unwrap()
        }),
        rates: Vec::new(),
    }
}

fn principal((kind, issuer, subject, groups, scopes): Person) -> Principal {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let (groups, scopes) = (texts(groups), texts(scopes));
    authenticate(match kind {
        PrincipalKind::Local => Evidence::OwnUser,
        PrincipalKind::Anonymous => Evidence::Loopback,
        PrincipalKind::Belljar => Evidence::Polling,
        PrincipalKind::Key => Evidence::Key(KeyIdentity { name: subject.to_owned(), groups, scopes }),
        PrincipalKind::Token => {
            let (issuer, subject) = (issuer.to_owned(), subject.to_owned());
            Evidence::Token(TokenIdentity { issuer, subject, client: None, groups, scopes })
        }
    })
}

// === The evaluator ===

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', b'*', rest @ ..] => (0..=text.len()).any(|skip| matches(rest, &text[skip..])),
        [b'*', rest @ ..] => {
            let segment = text.iter().take_while(|byte| **byte != b'/').count();
            (0..=segment).any(|skip| matches(rest, &text[skip..]))
        }
        [first, rest @ ..] => text.first() == Some(first) && matches(rest, &text[1..]),
    }
}

/// Decodes escapes once, then reduces repeated slashes.
fn simplified(text: &str) -> String {
    let (mut out, mut at) = (String::new(), 0);
    while at < text.len() {
        let escape = text.get(at..at + 3).filter(|escape| escape.starts_with('%'));
        match escape.and_then(|escape| u8::from_str_radix(&escape[1..], 16).ok()) {
            Some(byte) => {
                out.push(char::from(byte));
                at += 3;
            }
            None => {
                out.push_str(&text[at..=at]);
                at += 1;
            }
        }
    }
    while out.contains("//") {
        out = out.replace("//", "/");
    }
    out
}

/// The spellings of a URI: written, simple, simple without query and last slash, and this with a slash.
fn spellings(base: &str, reference: &str) -> [String; 4] {
    let whole = format!("{base}{reference}");
    let path = format!("{base}{}", reference.split('?').next().unwrap());
    let (simple_base, mut bare) = (simplified(base), simplified(&path));
    if bare.ends_with('/') && bare.len() > simple_base.len() {
        bare.pop();
    }
    let folder = if bare.ends_with('/') { bare.clone() } else { format!("{bare}/") };
    [whole.clone(), simplified(&whole), bare, folder]
}

/// The offset of a zone from UTC in minutes, in 2026.
fn offset(zone: &str, minute: i64) -> i64 {
    let day_of_year = |month: usize, day: i64| {
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        lengths[..month - 1].iter().sum::<i64>() + day - 1
    };
    let at = |month, day, hour: i64| day_of_year(month, day) * 1440 + hour * 60;
    match zone {
        "Asia/Kolkata" => 330,
        "Europe/Berlin" if (at(3, 29, 1)..at(10, 25, 1)).contains(&minute) => 120,
        "Europe/Berlin" => 60,
        "America/New_York" if (at(3, 8, 7)..at(11, 1, 6)).contains(&minute) => -240,
        "America/New_York" => -300,
        _ => 0,
    }
}

/// True if the rule applies in this minute of 2026: walks back to a minute at which its hours begin.
fn is_now(rule: &PlainRule, minute: i64) -> bool {
    let Some((days, begin, end, zone)) = &rule.window else { return true };
    let local = minute + offset(zone, minute);
    let length = if end > begin { end - begin } else { end + 1440 - begin };
    (0..length as i64).any(|back| {
        let start = local - back;
        // The first of January 2026 is a Thursday.
        let day = (start.div_euclid(1440) + 3).rem_euclid(7) as usize;
        start.rem_euclid(1440) == *begin as i64 && days.contains(&day)
    })
}

fn has_scopes(rule: &PlainRule, held: &[&str]) -> bool {
    rule.scopes.is_empty() || rule.scopes.iter().any(|set| set.split(' ').all(|scope| held.contains(&scope)))
}

fn is_person(rule: &PlainRule, (kind, issuer, subject, groups, _): Person) -> bool {
    let is_user = |user: &&str| {
        let own = if rule.issuers.is_empty() { *user } else { "" };
        match own {
            "local" => kind == PrincipalKind::Local,
            "anonymous" => kind == PrincipalKind::Anonymous,
            _ => kind == PrincipalKind::Token && subject == *user,
        }
    };
    (rule.users.is_empty() || rule.users.iter().any(is_user))
        && (rule.issuers.is_empty() || (kind == PrincipalKind::Token && rule.issuers.contains(&issuer)))
        && (rule.groups.is_empty() || groups.iter().any(|group| rule.groups.contains(group)))
        && (rule.keys.is_empty() || (kind == PrincipalKind::Key && rule.keys.contains(&subject)))
}

/// True if the rule is about this spelling: of a pattern as it is written, or simplified.
fn is_about(rule: &PlainRule, mount: &str, spelling: &str, is_simple: bool) -> bool {
    match (&rule.patterns, &rule.mounts) {
        (Some(patterns), _) => patterns.iter().any(|pattern| {
            let pattern = if is_simple { simplified(pattern) } else { pattern.clone() };
            matches(pattern.as_bytes(), spelling.as_bytes())
        }),
        (None, Some(mounts)) => mounts.contains(&mount),
        (None, None) => true,
    }
}

/// The expected decision: allowed, or the missing scopes, or nothing.
fn expected(
    rules: &[PlainRule],
    person: Person,
    action: &str,
    mount: usize,
    reference: &str,
    minute: i64,
) -> Result<(), String> {
    let (name, base) = MOUNTS[mount];
    if rules.is_empty() || person.0 == PrincipalKind::Belljar {
        return Ok(());
    }
    let [written, simple, bare, folder] = spellings(base, reference);
    let apply = |held: &[&str], is_denying: bool| {
        let applies = |rule: &&PlainRule| {
            rule.is_denying == is_denying
                && rule.actions.contains(&action)
                && is_now(rule, minute)
                && is_person(rule, person)
                && has_scopes(rule, held)
        };
        rules.iter().filter(applies).collect::<Vec<_>>()
    };
    let is_denied = |held: &[&str]| {
        apply(held, true).iter().any(|rule| {
            is_about(rule, name, &written, false)
                || is_about(rule, name, &simple, true)
                || is_about(rule, name, &bare, true)
                || is_about(rule, name, &folder, true)
        })
    };
    let is_allowed = apply(person.4, false).iter().any(|rule| is_about(rule, name, &written, false))
        && apply(person.4, false).iter().any(|rule| is_about(rule, name, &simple, true));
    if is_allowed && !is_denied(person.4) {
        return Ok(());
    }
    if !matches!(person.0, PrincipalKind::Key | PrincipalKind::Token) {
        return Err(String::new());
    }
    for rule in rules {
        let fits = !rule.is_denying
            && rule.actions.contains(&action)
            && is_now(rule, minute)
            && is_person(rule, person)
            && !has_scopes(rule, person.4)
            && is_about(rule, name, &written, false)
            && is_about(rule, name, &simple, true);
        if fits {
            let smallest = rule.scopes.iter().map(|set| set.split(' ').count()).min().unwrap();
            let needed = rule.scopes.iter().find(|set| set.split(' ').count() == smallest).unwrap();
            let held: Vec<&str> = person.4.iter().copied().chain(needed.split(' ')).collect();
            if !is_denied(&held) {
                return Err((*needed).to_owned());
            }
        }
    }
    Err(String::new())
}

/// The real decision in the form of [`expected`].
fn decided(
    rules: &RuleSet,
    person: Person,
    action: Action,
    mount: usize,
    reference: &str,
    minute: i64,
) -> Result<(), String> {
    let (name, base) = MOUNTS[mount];
    let name = MountName::new(name).unwrap();
    let target = Target { mount: &name, base, reference: Some(reference) };
    match rules.authorize(&principal(person), action, target, time(minute)) {
        Ok(_) => Ok(()),
        Err(Refusal::Hidden) => Err(String::new()),
        Err(Refusal::Scope(scopes)) => Err(scopes.join(" ")),
    }
}

/// The time of a minute of 2026, some seconds into it.
fn time(minute: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + u64::try_from(minute).unwrap() * 60 + 17)
}

#[test]
fn decisions_are_those_of_the_evaluator() {
    let mut random = Random(0x5eed_0017);
    let mut counts = [0u32; 6];
    for set in 0..SETS {
        let plain: Vec<PlainRule> = (0..random.below(7)).map(|_| rule(&mut random)).collect();
        let rules = RuleSet::new(plain.iter().map(real).collect());
        for _ in 0..3 {
            let mount = random.below(MOUNTS.len());
            let minute = i64::try_from(random.below(365 * 1440)).unwrap();
            let (word, action) = random.one(&ACTIONS);
            let mut references: Vec<String> = (0..6).map(|_| reference(&mut random)).collect();
            references.push(String::new());
            let name = MountName::new(MOUNTS[mount].0).unwrap();
            let target = Target { mount: &name, base: MOUNTS[mount].1, reference: None };
            let mut classes: Vec<(AccessClass, Vec<bool>)> = Vec::new();
            for person in [random.one(&PEOPLE), random.one(&PEOPLE), random.one(&PEOPLE)] {
                let visibility = rules.visibility(&principal(person), action, target, time(minute));
                let mut allowed = Vec::new();
                for reference in &references {
                    let about = || {
                        format!(
                            "set {set}: {person:?} {word} {}{reference} in minute {minute}\n{plain:#?}",
                            MOUNTS[mount].1
                        )
                    };
                    let expected = expected(&plain, person, word, mount, reference, minute);
                    assert_eq!(decided(&rules, person, action, mount, reference, minute), expected, "{}", about());
                    assert_eq!(visibility.contains(reference), expected.is_ok(), "visibility of {}", about());
                    if expected.is_ok() {
                        assert!(!visibility.is_nothing(), "not nothing: {}", about());
                        for end in 0..=reference.len() {
                            assert!(visibility.contains_below(&reference[..end]), "below {end} bytes of {}", about());
                        }
                    } else {
                        assert!(!visibility.is_all(), "not all: {}", about());
                    }
                    allowed.push(expected.is_ok());
                    counts[match &expected {
                        Ok(()) => 0,
                        Err(scopes) if scopes.is_empty() => 1,
                        Err(_) => 2,
                    }] += 1;
                }
                let whole = rules.authorize(&principal(person), action, target, time(minute));
                assert_eq!(whole.is_ok(), !visibility.is_nothing(), "set {set}");
                counts[3] += u32::from(visibility.is_nothing());
                counts[4] += u32::from(visibility.is_all());
                if let Some((_, others)) = classes.iter().find(|(class, _)| *class == visibility.class()) {
                    assert_eq!(*others, allowed, "set {set}: one class and two decisions\n{plain:#?}");
                    counts[5] += 1;
                }
                classes.push((visibility.class(), allowed));
            }
        }
    }
    // Each kind of decision is frequent enough to be tested.
    assert!(counts.iter().all(|count| *count > 5_000), "{counts:?}");
}
