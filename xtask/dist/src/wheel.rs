//! The Python wheel. It has no Python code: pip puts the program beside `python`, and the providers where the program looks.

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::digest;
use crate::output::Output;
use crate::project::Project;
use crate::target::Target;
use crate::tree::{File, Tree};
use crate::zip_archive;

/// Writes `belljar-VERSION-py3-none-PLATFORM.whl`.
pub(crate) fn write(output: &Output, project: &Project, target: &Target, tree: &Tree) -> Result<()> {
    let (base, platform) = (format!("belljar-{}", project.version), target.wheel());
    // pip installs `scripts` as programs into `bin`, and `data` below the root of the environment.
    let mut wheel = tree.renamed(|path| {
        Some(match path.strip_prefix("bin/") {
            Some(program) => format!("{base}.data/scripts/{program}"),
            None => format!("{base}.data/data/{path}"),
        })
    });
    wheel.file(format!("{base}.dist-info/METADATA"), metadata(project).into_bytes());
    let tags: Vec<String> = platform.split('.').map(|part| format!("py3-none-{part}")).collect();
    let bytes = pack(project, &base, wheel, false, &tags)?;
    output.write(&format!("{base}-py3-none-{platform}.whl"), &bytes)
}

/// Packs files with their `METADATA` as a wheel, and adds the other files that each wheel has. `is_pure` is true if pip installs
/// the files as modules of Python.
pub(crate) fn pack(project: &Project, base: &str, mut wheel: Tree, is_pure: bool, tags: &[String]) -> Result<Vec<u8>> {
    wheel.file(format!("{base}.dist-info/WHEEL"), header(project, is_pure, tags).into_bytes());
    wheel.file(format!("{base}.dist-info/licenses/LICENSE"), project.license_text.clone().into_bytes());
    let record = format!("{base}.dist-info/RECORD");
    wheel.file(record.clone(), sums(&wheel, &record).into_bytes());
    zip_archive::pack(&wheel)
}

/// The file `METADATA`: fields and the description of the project on PyPI.
fn metadata(project: &Project) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: belljar\nVersion: {}\nSummary: {}\nLicense-Expression: {}\nLicense-File: LICENSE\n\
         Classifier: Operating System :: POSIX :: Linux\n",
        project.version, project.description, project.license,
    );
    if let Some(address) = &project.repository {
        text += &format!("Project-URL: Source, {address}\n");
    }
    text += &format!("Description-Content-Type: text/markdown\n\n{}", project.readme);
    // The MCP registry looks for this line, to know that the package belongs to the name.
    if let Some(name) = project.registry_name() {
        text += &format!("\n<!-- mcp-name: {name} -->\n");
    }
    text
}

/// The file `WHEEL`. It has a line for each tag.
fn header(project: &Project, is_pure: bool, tags: &[String]) -> String {
    let (version, is_pure) = (&project.version, if is_pure { "true" } else { "false" });
    let start = format!("Wheel-Version: 1.0\nGenerator: belljar-dist {version}\nRoot-Is-Purelib: {is_pure}\n");
    tags.iter().fold(start, |text, tag| text + &format!("Tag: {tag}\n"))
}

/// The file `RECORD`: path, digest and size of each file. It has no digest of itself.
fn sums(wheel: &Tree, record: &str) -> String {
    let line = |(path, file): (&str, &File)| {
        let digest = URL_SAFE_NO_PAD.encode(digest::sha256(&file.bytes));
        format!("{path},sha256={digest},{}\n", file.bytes.len())
    };
    wheel.iter().map(line).chain([format!("{record},,\n")]).collect()
}
