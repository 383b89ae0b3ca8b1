//! Tests of the code cache: which entries are accepted, and which are not.

use super::*;

/// The configuration of a cache with a private directory, this key, and no shared directory.
fn private_only(own: Dir, key: u8) -> CodeCacheConfig {
    CodeCacheConfig {
        private: own,
        key: [key; 32],
        shared: None,
        signatures: Signatures::new(&[9; 32], false).unwrap(),
        installed: None,
    }
}

#[test]
fn shared_code_is_signed_by_processes_that_run_no_component() {
    let temp = tempfile::tempdir().unwrap();
    let dir = |name: &str| {
        std::fs::create_dir_all(temp.path().join(name)).unwrap();
        Dir::open_ambient_dir(temp.path().join(name), cap_std::ambient_authority()).unwrap()
    };
    let engine = engine::host(1).unwrap();
    let cache = |own: &str, secret: u8, may_sign| {
        let signatures = Signatures::new(&[secret; 32], may_sign).unwrap();
        CodeCache::new(
            CodeCacheConfig {
                private: dir(own),
                key: [7; 32],
                shared: Some(dir("shared")),
                signatures,
                installed: None,
            },
            &engine,
        )
    };
    let wasm = wat::parse_str("(component)").unwrap();
    let (digest, code) = (Digest::of(&wasm), compile(&wasm, Processors::Own).unwrap());
    let (one, two) = (cache("one", 1, false), cache("two", 1, false));
    // A serving process stores in its own directory only.
    one.store(&digest, &code).unwrap();
    assert!(one.find(&digest).is_some() && two.find(&digest).is_none());
    assert!(std::fs::read_dir(temp.path().join("shared")).unwrap().next().is_none());
    // Code signed by a process that runs no component loads in all processes with the same secret.
    cache("check", 1, true).store(&digest, &code).unwrap();
    assert!(two.find(&digest).is_some());
    assert!(cache("three", 2, false).find(&digest).is_none(), "code of another user was loaded");
    // Files in the shared directory without a valid signature do not load.
    let other = Digest::of(b"other");
    let place = |name: String| temp.path().join("shared").join(name);
    std::fs::copy(place(two.names(&digest).0), place(two.names(&other).0)).unwrap();
    std::fs::copy(place(two.signature_name(&digest)), place(two.signature_name(&other))).unwrap();
    assert!(two.find(&other).is_none(), "code of another component was loaded");
    std::fs::write(place(two.signature_name(&digest)), [0; 64]).unwrap();
    assert!(two.find(&digest).is_none());
}

#[test]
fn the_cache_returns_only_authentic_code() {
    let temp = tempfile::tempdir().unwrap();
    let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::host(1).unwrap();
    let wasm = wat::parse_str("(component)").unwrap();
    let digest = Digest::of(&wasm);
    let code = compile(&wasm, Processors::Own).unwrap();
    let cache = CodeCache::new(private_only(dir(), 7), &engine);
    assert!(cache.find(&digest).is_none());
    cache.store(&digest, &code).unwrap();
    assert!(cache.find(&digest).is_some());
    assert!(cache.find(&Digest::of(b"other")).is_none());
    assert!(CodeCache::new(private_only(dir(), 8), &engine).find(&digest).is_none(), "another key");

    let path = temp.path().join(cache.names(&digest).0);
    for at in [0, code.len() / 2, code.len() - 1] {
        let mut bad = code.clone();
        bad[at] ^= 1;
        std::fs::write(&path, &bad).unwrap();
        assert!(cache.find(&digest).is_none(), "byte {at}");
    }
    std::fs::write(&path, &code[..code.len() - 1]).unwrap();
    assert!(cache.find(&digest).is_none());
    cache.store(&digest, &code).unwrap();
    assert!(cache.find(&digest).is_some());
    let other = Digest::of(b"other");
    std::fs::rename(&path, temp.path().join(cache.names(&other).0)).unwrap();
    std::fs::copy(temp.path().join(cache.names(&digest).1), temp.path().join(cache.names(&other).1)).unwrap();
    assert!(cache.find(&other).is_none(), "another component's code under this name");
}

#[test]
fn damaged_code_is_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::host(1).unwrap();
    let wasm = wat::parse_str("(component)").unwrap();
    let (digest, mut code) = (Digest::of(&wasm), compile(&wasm, Processors::Own).unwrap());
    let cache = CodeCache::new(private_only(dir, 7), &engine);
    cache.store(&digest, &code).unwrap();
    code[100] ^= 1;
    std::fs::write(temp.path().join(cache.names(&digest).0), &code).unwrap();
    assert!(cache.has_entry(&digest));
    assert!(cache.find(&digest).is_none());
    assert!(!cache.has_entry(&digest), "it has to be compiled");
    code[100] ^= 1;
    cache.store(&digest, &code).unwrap();
    assert!(cache.find(&digest).is_some());
}

#[test]
fn use_of_an_entry_is_recorded_once_a_day() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let (now, hour) = (SystemTime::now(), Duration::from_secs(3600));
    let file = std::fs::File::create(temp.path().join("a.cwasm")).unwrap();
    let is_recorded = |at| {
        file.set_modified(at).unwrap();
        std::fs::remove_file(temp.path().join("a.used")).ok();
        record_use(&dir, "a", &File::from_std(file.try_clone().unwrap()));
        dir.exists("a.used")
    };
    assert!(!is_recorded(now - hour));
    assert!(is_recorded(now - 25 * hour));
    assert!(is_recorded(now + 25 * hour), "a time in the future comes from a wrong clock, and does not count");
}

#[test]
fn failures_are_stored_for_one_digest() {
    let temp = tempfile::tempdir().unwrap();
    let dir = || Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let engine = engine::compiler(Processors::Own).unwrap();
    let cache = CodeCache::new(private_only(dir(), 7), &engine);
    let digest = Digest::of(b"bad");
    assert!(cache.stored_failure(&digest).is_none() && !cache.has_entry(&digest));
    cache.store_failure(&digest, "it is bad").unwrap();
    assert_eq!(cache.stored_failure(&digest).as_deref(), Some("it is bad"));
    assert!(cache.has_entry(&digest) && cache.stored_failure(&Digest::of(b"other")).is_none());
    assert!(CodeCache::new(private_only(dir(), 8), &engine).stored_failure(&digest).is_none(), "another key");
    let path = temp.path().join(cache.failure_name(&digest));
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(cache.stored_failure(&digest).is_none(), "altered");
}

#[test]
fn unused_entries_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    let cache = CodeCache::new(private_only(dir, 7), &engine::compiler(Processors::Own).unwrap());
    let old = SystemTime::now() - MAX_UNUSED_TIME - Duration::from_secs(1);
    for (name, is_old) in
        [("a.cwasm", true), ("a.mac", true), ("b.cwasm", false), ("c.x.tmp", true), ("d.x.tmp", false), ("key", true)]
    {
        let file = std::fs::File::create(temp.path().join(name)).unwrap();
        if is_old {
            file.set_modified(old).unwrap();
        }
    }
    cache.store_failure(&Digest::of(b"bad"), "it is bad").unwrap();
    let refused = temp.path().join(cache.failure_name(&Digest::of(b"bad")));
    std::fs::File::open(&refused).unwrap().set_modified(old).unwrap();
    assert!(cache.stored_failure(&Digest::of(b"bad")).is_some(), "reading the failure counts as a use");
    cache.remove_unused().unwrap();
    let left = |name: &str| temp.path().join(name).exists();
    assert_eq!(
        ["a.cwasm", "a.mac", "b.cwasm", "c.x.tmp", "d.x.tmp", "key"].map(left),
        [false, false, true, false, true, true]
    );
    assert!(refused.exists());
}

#[test]
fn invalid_components_do_not_compile() {
    assert!(compile(b"\0asm\x0d\0\x01\0\xff", Processors::Own).is_err());
    assert!(compile(b"(component)", Processors::Own).is_err(), "text is not accepted");
}

/// The installed code of a component, in a file with these permissions.
fn installed(temp: &std::path::Path, code: &[u8], mode: u32) -> (InstalledCode, Digest) {
    let digest = Digest::of(b"a component");
    let path = temp.join(format!("{}.cwasm", digest.hex()));
    std::fs::write(&path, code).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    (InstalledCode::new(Dir::open_ambient_dir(temp, cap_std::ambient_authority()).unwrap()), digest)
}

#[test]
fn code_for_common_processors_loads_unless_others_can_write_it() {
    let temp = tempfile::tempdir().unwrap();
    let engine = engine::host(1).unwrap();
    let wasm = wat::parse_str("(component)").unwrap();
    let code = compile(&wasm, Processors::Most).unwrap();
    let (own, digest) = installed(temp.path(), &code, 0o644);
    assert!(own.load(&engine, &digest).is_some());
    assert_eq!(own.len(&digest), Some(code.len() as u64));
    assert!(own.load(&engine, &Digest::of(b"another")).is_none());
    for mode in [0o664, 0o646] {
        let (shared, digest) = installed(temp.path(), &code, mode);
        assert!(shared.load(&engine, &digest).is_none(), "{mode:o}");
    }
    let (broken, digest) = installed(temp.path(), b"no code", 0o644);
    assert!(broken.load(&engine, &digest).is_none());
}
