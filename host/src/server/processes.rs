//! What the kernel says about other processes of this user (proc(5)).

use crate::model::text;

/// The longest name that is shown.
const MAX_NAME: usize = 40;

/// The resident memory of a process, in bytes. Memory that several processes share counts for each.
pub(crate) fn memory(pid: u32) -> Option<u64> {
    let kib = field(&read(pid, "status")?, "VmRSS:")?.strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    kib.checked_mul(1024)
}

/// The name of the program that started a process.
pub(crate) fn parent_name(pid: i32) -> Option<String> {
    let status = read(u32::try_from(pid).ok()?, "status")?;
    let parent = field(&status, "PPid:")?.parse::<u32>().ok().filter(|parent| *parent != 0)?;
    Some(text::excerpt(read(parent, "comm")?.trim_end(), MAX_NAME))
}

/// The value of a line such as `PPid: 12`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn read(pid: u32, file: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the kernel's facts about a process")]
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_this_process() {
        let own = std::process::id();
        assert!(memory(own).unwrap() > 1 << 20);
        assert!(!parent_name(i32::try_from(own).unwrap()).unwrap().is_empty());
        assert_eq!((memory(u32::MAX), parent_name(-1)), (None, None));
    }
}
