//! Directories of files in memory ([`MemoryDirectory`]): their paths and entries, as `wasi:filesystem` shows them.
//! Nothing here touches a file of the host, and no code here writes.

use std::sync::Arc;

use wasmtime::StoreContextMut;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::call_state::FileOperation;
use super::descriptor::Descriptor;
use super::memory_file::OpenMemoryFile;
use super::name::Fs;
use super::on_thread::retry_on_dedicated_thread;
use super::resolve::ResolveError;
use crate::grants::file_exchange;
use crate::grants::front::FrontRequest;
use crate::grants::grant::{HasCallState, record_fuel};
use crate::grants::memory_directory::{MemoryDirectory, MemoryFileError};

/// The number of a regular file in the records of [`super::directory_records`].
const REGULAR_FILE: u8 = 6;

/// The name of the file at a guest's path. `None`: the path is the directory itself. No link leads anywhere, so the text
/// alone decides.
fn file_name(path: &str) -> Result<Option<&str>, ResolveError> {
    let failed = |code| Err(ResolveError::Failed(code));
    if path.is_empty() {
        return failed(ErrorCode::NoEntry);
    }
    if path.contains('\0') {
        return failed(ErrorCode::Invalid);
    }
    if path.starts_with('/') {
        return Err(ResolveError::Outside);
    }
    let mut name = None;
    for segment in path.split('/') {
        match (segment, name) {
            ("" | ".", None) => {}
            ("..", None) => return Err(ResolveError::Outside),
            (segment, None) => name = Some(segment),
            // Only a directory has something below it, and a slash after its name.
            (_, Some(_)) => return failed(ErrorCode::NotDirectory),
        }
    }
    Ok(name)
}

/// Opens what lies at `path` in a directory. A refusal, and a file that cannot be made, are recorded.
pub(super) async fn open_at<T: HasCallState<Fs>>(
    store: &mut StoreContextMut<'_, T>,
    dir: &Arc<dyn MemoryDirectory>,
    operation: FileOperation,
    path: &str,
) -> Result<Descriptor, ErrorCode> {
    let name = match file_name(path) {
        Ok(Some(name)) => name,
        Ok(None) => return Ok(Descriptor::MemoryDir(Arc::clone(dir))),
        Err(error) => return Err(store.data_mut().call_state().refuse(operation, path, error)),
    };
    let front = store.data_mut().call_state().record().front().cloned();
    let (opened, is_recorded) = match front.map(|front| (front, dir.open(name, false))) {
        // In a worker process, the front makes the file. Nothing blocks here.
        Some((front, Err(MemoryFileError::NeedsThread))) => {
            record_fuel(store);
            let request = FrontRequest::File(dir.kind().to_owned(), name.to_owned());
            (file_exchange::fetch(front.open(request)).await, true)
        }
        Some((_, done)) => (done, false),
        None => {
            let opened = retry_on_dedicated_thread(store, |may_block| match dir.open(name, may_block) {
                Err(MemoryFileError::NeedsThread) => Err(ResolveError::NeedsThread),
                done => Ok(done),
            });
            (opened.await.map_err(ResolveError::code)?, false)
        }
    };
    let file = store.data_mut().call_state().record_memory_file(operation, &**dir, name, opened, is_recorded)?;
    Ok(Descriptor::MemoryFile(OpenMemoryFile::new(&**dir, name, file)))
}

/// The entries of a directory as bytes, from any position; see [`super::directory_records`].
pub(super) fn records(dir: &dyn MemoryDirectory, position: u64, length: usize) -> Result<(Vec<u8>, bool), ErrorCode> {
    let mut out = Vec::new();
    let start = usize::try_from(position).map_err(|_| ErrorCode::Invalid)?;
    for (at, name) in dir.names().into_iter().enumerate().skip(start) {
        let size = u16::try_from(name.len()).map_err(|_| ErrorCode::NameTooLong)?;
        if out.len() + 8 + 1 + 2 + name.len() > length {
            return if out.is_empty() { Err(ErrorCode::Invalid) } else { Ok((out, false)) };
        }
        out.extend_from_slice(&(at as u64 + 1).to_le_bytes());
        out.push(REGULAR_FILE);
        out.extend_from_slice(&size.to_le_bytes());
        out.extend_from_slice(name.as_bytes());
    }
    Ok((out, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::memory_directory::MemoryFile;

    struct Two;

    impl MemoryDirectory for Two {
        fn guest(&self) -> &str {
            "/two"
        }

        fn kind(&self) -> &'static str {
            "two"
        }

        fn names(&self) -> Vec<&'static str> {
            vec!["a.json", "b.json"]
        }

        fn open(&self, _: &str, _: bool) -> Result<Arc<MemoryFile>, MemoryFileError> {
            Err(MemoryFileError::Absent)
        }

        fn cure(&self, _: &str, _: &str) -> Option<String> {
            None
        }
    }

    #[test]
    fn paths_name_a_file_or_the_directory_and_lead_nowhere_else() {
        for (path, name) in [("a.json", Some("a.json")), ("./a.json", Some("a.json")), (".", None), ("./", None)] {
            assert_eq!(file_name(path), Ok(name), "{path}");
        }
        for path in ["..", "../proc/self/environ", "./../x", "/proc/self/environ", "/", "//etc/passwd"] {
            assert_eq!(file_name(path), Err(ResolveError::Outside), "{path}");
        }
        for path in ["a.json/", "a.json/..", "a.json/../../proc", "a.json/."] {
            assert_eq!(file_name(path), Err(ResolveError::Failed(ErrorCode::NotDirectory)), "{path}");
        }
        assert_eq!(file_name(""), Err(ResolveError::Failed(ErrorCode::NoEntry)));
        assert_eq!(file_name("a\0"), Err(ResolveError::Failed(ErrorCode::Invalid)));
    }

    #[test]
    fn records_continue_at_a_position() {
        let (all, is_end) = records(&Two, 0, 1000).unwrap();
        assert!(is_end && all.ends_with(b"b.json") && all.len() == 2 * (11 + 6));
        let (first, is_end) = records(&Two, 0, 20).unwrap();
        assert!(!is_end && first.ends_with(b"a.json"));
        let (second, is_end) = records(&Two, 1, 20).unwrap();
        assert!(is_end && second.ends_with(b"b.json"));
        assert_eq!(records(&Two, 2, 20).unwrap(), (Vec::new(), true));
        assert!(matches!(records(&Two, 0, 5), Err(ErrorCode::Invalid)));
    }
}
