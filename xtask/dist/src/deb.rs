//! The Debian package.
//!
//! It is written here, not by `dpkg-deb`. The format is three files in an `ar` archive, two of them the tar archives that
//! [`crate::archive`] makes anyway. So the bytes depend on no version of dpkg, and packages can be made on any Linux system.
//! The tests read the package with `dpkg-deb`.

use anyhow::Result;

use crate::archive::Tar;
use crate::output::Output;
use crate::project::{AUTHORS, Project};
use crate::target::{Linkage, Target};
use crate::tree::Tree;

/// The revision of the packaging: it counts packages of one version of belljar.
const REVISION: u32 = 1;

/// The address of the maintainers. Debian demands one; the repository names none, and ".invalid" can never belong to a person.
const ADDRESS: &str = "contributors@belljar.invalid";

/// Writes `belljar_VERSION-REVISION_ARCHITECTURE.deb`.
pub(crate) fn write(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    // Debian's zsh reads completions of packages from a directory of its own.
    let tree = tree.renamed(|path| Some(path.replace("share/zsh/site-functions/", "share/zsh/vendor-completions/")));
    let mut data = Tar::compressed(project);
    data.tree("./usr/", &tree)?;
    let mut description = Tree::default();
    description.file("control", control(project, target, tree.size()).into_bytes());
    let mut control = Tar::compressed(project);
    control.tree("./", &description)?;
    let mut archive = b"!<arch>\n".to_vec();
    member(&mut archive, "debian-binary", project.time, b"2.0\n");
    member(&mut archive, "control.tar.gz", project.time, &control.finish()?);
    member(&mut archive, "data.tar.gz", project.time, &data.finish()?);
    let architecture = target.architecture.debian();
    output.write(&format!("belljar_{}-{REVISION}_{architecture}.deb", project.version), &archive)
}

/// The file `control` (deb-control(5)). `size` is the size of all installed files, in bytes.
fn control(project: &Project, target: &Target, size: u64) -> String {
    let mut fields = vec![
        ("Package", "belljar".to_owned()),
        ("Version", format!("{}-{REVISION}", project.version)),
        ("Architecture", target.architecture.debian().to_owned()),
        ("Maintainer", format!("{AUTHORS} <{ADDRESS}>")),
        ("Installed-Size", size.div_ceil(1024).to_string()),
        ("Section", "net".to_owned()),
        ("Priority", "optional".to_owned()),
    ];
    if let Linkage::Glibc(major, minor) = target.linkage {
        fields.push(("Depends", format!("libc6 (>= {major}.{minor}), libgcc-s1")));
    }
    fields.extend(project.repository.clone().map(|address| ("Homepage", address)));
    // A line that begins with a space continues the field.
    let more = " A provider reaches no file, no network and no secret without a grant. Limits bound\n every call. \
                The providers are in /usr/lib/belljar/providers.";
    fields.push(("Description", format!("{}\n{more}", project.description)));
    fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
}

/// Adds a file to an `ar` archive. Its header has 60 bytes: name, time, user, group, mode in octal, size, and a mark.
fn member(archive: &mut Vec<u8>, name: &str, time: u64, bytes: &[u8]) {
    let size = bytes.len();
    archive.extend(format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "100644").into_bytes());
    archive.extend(bytes);
    // Each header begins at an even offset.
    if size % 2 == 1 {
        archive.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::member;

    #[test]
    fn each_member_begins_at_an_even_offset() {
        let mut archive = Vec::new();
        member(&mut archive, "odd", 7, b"abc");
        assert_eq!(archive.len(), 60 + 4);
        member(&mut archive, "even", 7, b"abcd");
        assert_eq!(archive.len(), 2 * 60 + 4 + 4);
        let text = String::from_utf8(archive).unwrap();
        assert!(text.starts_with("odd             7           0     0     100644  3         `\nabc\neven "), "{text}");
    }
}
