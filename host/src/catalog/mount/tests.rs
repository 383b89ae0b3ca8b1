//! Which files are read, and when one is taken for another.

use super::*;

/// A mount that no call reaches.
pub(crate) fn mount(name: &str, base: &str) -> Mount {
    Mount::plain(MountName::new(name).unwrap(), base, Limits::default())
}

#[test]
fn only_plain_files_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    std::fs::write(path("good.wasm"), b"12345678").unwrap();
    std::os::unix::fs::symlink("good.wasm", path("link.wasm")).unwrap();
    std::fs::create_dir(path("dir.wasm")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, path("fifo.wasm"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let sparse = std::fs::File::create(path("huge.wasm")).unwrap();
    sparse.set_len(2 << 30).unwrap();
    let dir = Dir::open_ambient_dir(temp.path(), cap_std::ambient_authority()).unwrap();
    assert_eq!(Source::read(&dir, "good.wasm", 8).unwrap().digest, Digest::of(b"12345678"));
    for special in ["link.wasm", "dir.wasm", "fifo.wasm"] {
        assert!(Source::read(&dir, special, 8).err().unwrap().to_string().contains("not a regular file"), "{special}");
    }
    assert!(Source::read(&dir, "good.wasm", 7).err().unwrap().to_string().contains("8B, over the limit of 7B"));
    assert!(
        Source::read(&dir, "huge.wasm", 64 << 20).err().unwrap().to_string().contains("2GiB, over the limit of 64MiB")
    );
    assert!(Source::read(&dir, "none.wasm", 8).err().unwrap().to_string().contains("there is no \"none.wasm\""));
}
