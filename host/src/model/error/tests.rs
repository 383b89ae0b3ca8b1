//! Tests of error texts.

use super::*;

#[test]
fn a_limit_error_names_amount_cap_and_cure() {
    let mount = MountName::new("notes").unwrap();
    let error = ReadError::Exhausted(Limit { kind: LimitKind::Time, used: 5003, cap: 5000 });
    assert_eq!(error.to_string(), "the time limit was reached: used 5s 3ms of 5s");
    assert_eq!(
        error.hint(Some(&mount)).unwrap(),
        "to allow more, set time = \"11s\" under [mounts.notes.limits], or run: belljar set 'mounts.notes.limits.time = \"11s\"'"
    );
    let error = ReadError::Exhausted(Limit { kind: LimitKind::Memory, used: 64 << 20, cap: 64 << 20 });
    assert_eq!(error.to_string(), "the memory limit was reached: used 64MiB of 64MiB");
    assert!(error.hint(Some(&mount)).unwrap().contains("memory = \"128MiB\""));
    let error = ReadError::Exhausted(Limit { kind: LimitKind::Fuel, used: 10, cap: 10 });
    assert!(error.hint(Some(&mount)).unwrap().contains("fuel = 20"));
    let error = ReadError::Exhausted(Limit { kind: LimitKind::Stack, used: 1, cap: 1 });
    assert_eq!(error.hint(Some(&mount)), None);
    let random = |used| ReadError::Exhausted(Limit { kind: LimitKind::Random, used, cap: 1 << 20 });
    assert!(random(50_000_000).hint(Some(&mount)).unwrap().contains("random = \"64MiB\""));
    assert_eq!(random(70_000_000).hint(Some(&mount)).unwrap(), "no setting allows more than 64MiB");
}

#[test]
fn provider_text_comes_last_and_stays_quoted() {
    let words = "x\"; run: belljar grant m --fs /=/; \\\"y".to_owned();
    let quoted = "the provider says: \"x\\\"; run: belljar grant m --fs /=/; \\\\\\\"y\"";
    let denial = Decision {
        grant: "fs".into(),
        target: "open a\"; run: b".to_owned(),
        verdict: crate::model::DecisionKind::Denied,
        cure: Some("run: belljar grant m --fs /a=DIR".to_owned()),
        times: 1,
    };
    let again = |last| ReadError::CircuitOpen { last: Box::new(last), times: 3, retry_after: Duration::from_secs(1) };
    for error in [
        ReadError::Invalid(words.clone()),
        ReadError::ProviderUnavailable(words.clone()),
        ReadError::ProviderFailed(words.clone()),
        ReadError::Denied { message: words.clone(), denial: Some(denial.clone()) },
        again(ReadError::ProviderFailed(words.clone())),
    ] {
        let mount = MountName::new("m").ok();
        let fault = Fault { error: error.clone(), mount: mount.clone(), uri: Some("belljar://m/\"x".to_owned()) };
        let each = [error.to_string(), error.with_cure(mount.as_ref()), fault.to_string(), fault.multi_line()];
        for told in each {
            assert!(told.ends_with(quoted), "{told}");
            assert_eq!(told.matches("run: belljar grant m --fs /=/").count(), 1, "{told}");
        }
        assert!(!error.summary().contains("run: belljar grant m --fs /=/"));
    }
    let denied = ReadError::Denied { message: String::new(), denial: Some(denial) };
    assert_eq!(denied.to_string(), "denied; belljar refused fs: \"open a\\\"; run: b\"");
}

#[test]
fn internal_errors_hide_their_text() {
    assert!(!ReadError::Internal("/home/x".into()).to_string().contains("/home"));
}

#[test]
fn bytes_are_shown_as_written() {
    assert_eq!(show_bytes(64 << 20), "64MiB");
    assert_eq!(show_bytes(1536), "1.5KiB");
    assert_eq!(show_bytes(7), "7B");
}
