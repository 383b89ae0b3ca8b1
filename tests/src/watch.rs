//! Watches which files below a directory are opened, by inotify. The kernel reports the files, so a test need not trust
//! the host.

use std::ffi::OsString;
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

/// Reports the files that any process opens below a directory. Directories that were created after the start do not
/// count.
#[derive(Debug)]
pub struct Watch {
    events: OwnedFd,
    directories: Vec<(i32, PathBuf)>,
}

impl Watch {
    /// Watches `directory` and its present subdirectories. Does not follow symbolic links.
    pub fn over(directory: impl AsRef<Path>) -> Watch {
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).expect("this machine watches files");
        let mut watch = Watch { events, directories: Vec::new() };
        watch.add(directory.as_ref());
        watch
    }

    /// The files and directories that were opened or read since the last call, each once, in order.
    pub fn opened(&mut self) -> Vec<PathBuf> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        let mut opened = Vec::new();
        while let Ok(event) = events.next() {
            let known = self.directories.iter().find(|(id, _)| *id == event.wd());
            let Some((_, directory)) = known else { panic!("the kernel lost events: watch less at once") };
            let path = match event.file_name() {
                Some(name) => directory.join(OsString::from_vec(name.to_bytes().to_vec())),
                None => directory.clone(),
            };
            if !opened.contains(&path) {
                opened.push(path);
            }
        }
        opened
    }

    fn add(&mut self, directory: &Path) {
        // Add the children first: listing a directory opens it, and the watch must not report that.
        for entry in fs::read_dir(directory).expect("a readable directory") {
            let entry = entry.expect("a readable directory");
            if entry.file_type().expect("a readable directory").is_dir() {
                self.add(&entry.path());
            }
        }
        let wanted = inotify::WatchFlags::OPEN | inotify::WatchFlags::ACCESS;
        let id = inotify::add_watch(&self.events, directory, wanted).expect("room for one more watch");
        self.directories.push((id, directory.to_path_buf()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_opened_files_are_reported() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("below")).unwrap();
        let (read, left) = (root.path().join("below/read"), root.path().join("left"));
        fs::write(&read, "x").unwrap();
        fs::write(&left, "x").unwrap();
        let mut watch = Watch::over(root.path());
        assert_eq!(watch.opened(), Vec::<PathBuf>::new());
        fs::read(&read).unwrap();
        assert_eq!(watch.opened(), [read]);
        assert_eq!(watch.opened(), Vec::<PathBuf>::new());
    }
}
