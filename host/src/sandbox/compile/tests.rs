//! What of compiled code is taken back from a cache, and what is not.

use super::*;

/// A directory of its own with this key, and nothing shared.
fn kept(own: Dir, key: u8) -> CodeStore {
    CodeStore { own, key: [key; 32], shared: None, signatures: Signatures::new(&[9; 32], false).unwrap() }
}

#[test]
fn what_is_shared_is_signed_and_only_who_runs_nothing_signs() {
    let temp = tempfile::tempdir().unwrap();
    let dir = |name: &str| {
        std::fs::create_dir_all(temp.path().join(name)).unwrap();
        Dir::open_ambient_dir(temp.path().join(name), cap_std::ambient_authority()).unwrap()
    };
    let engine = engine::host(1).unwrap();
    let cache = |own: &str, secret: u8, may_sign| {
        let signatures = Signatures::new(&[secret; 32], may_sign).unwrap();
        Cache::new(CodeStore { own: dir(own), key: [7; 32], shared: Some(dir("shared")), signatures }, &engine)
    };
    let wasm = wat::parse_str("(component)").unwrap();
    let (digest, code) = (Digest::of(&wasm), compile(&wasm).unwrap());
    let (one, two) = (cache("one", 1, false), cache("two", 1, false));
    // What serves keeps for itself, also where its key is another's.
    one.store(&digest, &code).unwrap();
    assert!(one.load(&engine, &digest).unwrap().is_some() && two.load(&engine, &digest).unwrap().is_none());
    assert!(std::fs::read_dir(temp.path().join("shared")).unwrap().next().is_none());
    // What was compiled by one that runs nothing is everybody's who has the same secret.
    cache("check", 1, true).store(&digest, &code).unwrap();
    assert!(two.load(&engine, &digest).unwrap().is_some());
    assert!(cache("three", 2, false).load(&engine, &digest).unwrap().is_none(), "another user's");
    // What lies there without a signature of theirs is nobody's.
    let other = Digest::of(b"other");
    let place = |name: String| temp.path().join("shared").join(name);
    std::fs::copy(place(two.names(&digest).0), place(two.names(&other).0)).unwrap();
    std::fs::copy(place(two.signature_name(&digest)), place(two.signature_name(&other))).unwrap();
    assert!(two.load(&engine, &other).unwrap().is_none(), "another component's");
    std::fs::write(place(two.signature_name(&digest)), [0; 64]).unwrap();
    assert!(two.load(&engine, &digest).unwrap().is_none());
}

#[test]
fn the_cache_gives_back_what_it_was_given_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::host(1).unwrap();
    let wasm = wat::parse_str("(component)").unwrap();
    let digest = Digest::of(&wasm);
    let code = compile(&wasm).unwrap();
    let cache = Cache::new(kept(dir(), 7), &engine);
    assert!(cache.load(&engine, &digest).unwrap().is_none());
    cache.store(&digest, &code).unwrap();
    assert!(cache.load(&engine, &digest).unwrap().is_some());
    assert!(cache.load(&engine, &Digest::of(b"other")).unwrap().is_none());
    assert!(Cache::new(kept(dir(), 8), &engine).load(&engine, &digest).unwrap().is_none(), "another key");

    let path = temp.path().join(cache.names(&digest).0);
    for at in [0, code.len() / 2, code.len() - 1] {
        let mut bad = code.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_none(), "byte {at}");
    }
    std::fs::write(&path, &code[..code.len() - 1]).unwrap();
    assert!(cache.load(&engine, &digest).unwrap().is_none());
    cache.store(&digest, &code).unwrap();
    assert!(cache.load(&engine, &digest).unwrap().is_some());
    let other = Digest::of(b"other");
    std::fs::rename(&path, temp.path().join(cache.names(&other).0)).unwrap();
    std::fs::copy(temp.path().join(cache.names(&digest).1), temp.path().join(cache.names(&other).1)).unwrap();
    assert!(cache.load(&engine, &other).unwrap().is_none(), "another component's code under this name");
}

#[test]
fn what_is_damaged_is_looked_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::host(1).unwrap();
    let wasm = wat::parse_str("(component)").unwrap();
    let (digest, mut code) = (Digest::of(&wasm), compile(&wasm).unwrap());
    let cache = Cache::new(kept(dir, 7), &engine);
    cache.store(&digest, &code).unwrap();
    code[100] ^= 1;
    std::fs::write(temp.path().join(cache.names(&digest).0), &code).unwrap();
    assert!(cache.knows(&digest));
    assert!(cache.load(&engine, &digest).unwrap().is_none());
    assert!(!cache.knows(&digest), "it has to be compiled");
    code[100] ^= 1;
    cache.store(&digest, &code).unwrap();
    assert!(cache.load(&engine, &digest).unwrap().is_some());
}

#[test]
fn that_an_entry_is_used_is_noted_once_a_day() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let file = std::fs::File::create(temp.path().join("a.cwasm")).unwrap();
    let noted = |at| {
        file.set_modified(at).unwrap();
        std::fs::remove_file(temp.path().join("a.used")).ok();
        note_use(&dir, "a", &File::from_std(file.try_clone().unwrap()));
        dir.exists("a.used")
    };
    assert!(!noted(now - hour));
    assert!(noted(now - 25 * hour));
    assert!(noted(now + 25 * hour), "a clock that was wrong");
}

#[test]
fn refusals_are_remembered_for_the_very_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::compiler().unwrap();
    let cache = Cache::new(kept(dir(), 7), &engine);
    let digest = Digest::of(b"bad");
    assert!(cache.refusal(&digest).is_none() && !cache.knows(&digest));
    cache.refuse(&digest, "it is bad").unwrap();
    assert_eq!(cache.refusal(&digest).as_deref(), Some("it is bad"));
    assert!(cache.knows(&digest) && cache.refusal(&Digest::of(b"other")).is_none());
    assert!(Cache::new(kept(dir(), 8), &engine).refusal(&digest).is_none(), "another key");
    let path = temp.path().join(cache.refusal_name(&digest));
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(cache.refusal(&digest).is_none(), "altered");
}

#[test]
fn what_nobody_asks_for_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let cache = Cache::new(kept(dir, 7), &engine::compiler().unwrap());
    let old = SystemTime::now() - UNUSED - Duration::from_secs(1);
    for (name, is_old) in
        [("a.cwasm", true), ("a.mac", true), ("b.cwasm", false), ("c.x.tmp", true), ("d.x.tmp", false), ("key", true)]
    {
        let file = std::fs::File::create(temp.path().join(name)).unwrap();
        if is_old {
            file.set_modified(old).unwrap();
        }
    }
    cache.refuse(&Digest::of(b"bad"), "it is bad").unwrap();
    let refused = temp.path().join(cache.refusal_name(&Digest::of(b"bad")));
    std::fs::File::open(&refused).unwrap().set_modified(old).unwrap();
    assert!(cache.refusal(&Digest::of(b"bad")).is_some(), "asked for, so in use");
    cache.tidy().unwrap();
    let left = |name: &str| temp.path().join(name).exists();
    assert_eq!(
        ["a.cwasm", "a.mac", "b.cwasm", "c.x.tmp", "d.x.tmp", "key"].map(left),
        [false, false, true, false, true, true]
    );
    assert!(refused.exists());
}

#[test]
fn invalid_components_do_not_compile() {
    assert!(compile(b"\0asm\x0d\0\x01\0\xff").is_err());
    assert!(compile(b"(component)").is_err(), "text is not accepted");
}
