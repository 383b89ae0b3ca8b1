//! The OCI image: an image layout in one tar archive, which podman, skopeo and containerd read. No Docker is needed.
//!
//! `index.json` names one image index, which names the image of each architecture. So a tool that reads the archive selects the
//! image of its own machine.

use anyhow::Result;
use serde_json::{Value, json};

use crate::archive::{Tar, gzip};
use crate::digest;
use crate::output::Output;
use crate::program::Program;
use crate::project::Project;
use crate::target::Target;
use crate::tree::Tree;

/// The number of the user and of the group that the program runs as: the number that images without an own user list use.
const USER: u64 = 65532;

/// The working directory, which belongs to [`USER`]. `belljar serve` looks there for `belljar.toml` and `plugins`.
const HOME: &str = "var/lib/belljar/";

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Writes `belljar-VERSION-oci.tar`.
pub(crate) fn write(output: &Output, project: &Project, trees: &[(Program, Tree)]) -> Result<()> {
    let mut layout = Tree::default();
    let mut manifests = Vec::new();
    for (program, tree) in trees {
        manifests.push(image(&mut layout, project, &program.target, tree)?);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    let mut all = blob(&mut layout, INDEX, serde_json::to_vec(&index)?);
    merge(
        &mut all,
        "annotations",
        json!({ "org.opencontainers.image.ref.name": format!("belljar:{}", project.version) }),
    );
    let top = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [all] });
    layout.file("index.json", serde_json::to_vec(&top)?);
    layout.file("oci-layout", serde_json::to_vec(&json!({ "imageLayoutVersion": "1.0.0" }))?);
    let mut tar = Tar::plain(project);
    tar.tree("", &layout)?;
    output.write(&format!("belljar-{}-oci.tar", project.version), &tar.finish()?)
}

/// Adds the image of one architecture. Returns the descriptor of its manifest.
fn image(layout: &mut Tree, project: &Project, target: &Target, tree: &Tree) -> Result<Value> {
    let mut layer = Tar::plain(project);
    for above in ["var/", "var/lib/"] {
        layer.directory(above, 0)?;
    }
    // `belljar serve` ends if there is no plugin directory. An empty one may stay as it is.
    layer.directory(HOME, USER)?;
    layer.directory(&format!("{HOME}plugins/"), USER)?;
    // Completions and manual pages are for shells, and the image has none.
    let is_needed = |path: &str| !path.starts_with("share/") || path.starts_with("share/doc/");
    layer.tree("usr/", &tree.filtered(is_needed))?;
    let layer = layer.finish()?;
    let platform = json!({ "architecture": target.architecture.debian(), "os": "linux" });
    let mut config = json!({
        "created": project.timestamp(),
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin", format!("HOME=/{}", HOME.trim_end_matches('/'))],
            "WorkingDir": format!("/{}", HOME.trim_end_matches('/')),
            "Entrypoint": ["/usr/bin/belljar"],
            "Cmd": ["serve"],
            "Labels": labels(project),
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{}", digest::hex(&layer))] },
        "history": [{ "created": project.timestamp(), "created_by": "cargo xtask dist" }],
    });
    merge_all(&mut config, &platform);
    let layers = vec![blob(layout, LAYER, gzip(&layer)?)];
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": blob(layout, CONFIG, serde_json::to_vec(&config)?),
        "layers": layers,
        "annotations": labels(project),
    });
    let mut descriptor = blob(layout, MANIFEST, serde_json::to_vec(&manifest)?);
    merge(&mut descriptor, "platform", platform);
    Ok(descriptor)
}

/// What the image says about itself, with the keys of the OCI specification.
fn labels(project: &Project) -> Value {
    let mut labels = json!({
        "org.opencontainers.image.title": "belljar",
        "org.opencontainers.image.description": project.description,
        "org.opencontainers.image.version": project.version,
        "org.opencontainers.image.licenses": project.license,
    });
    if let Some(address) = &project.repository {
        merge(&mut labels, "org.opencontainers.image.source", json!(address));
    }
    labels
}

/// Adds a blob to the layout. Returns its descriptor.
fn blob(layout: &mut Tree, kind: &str, bytes: Vec<u8>) -> Value {
    let (digest, size) = (digest::hex(&bytes), bytes.len());
    layout.file(format!("blobs/sha256/{digest}"), bytes);
    json!({ "mediaType": kind, "digest": format!("sha256:{digest}"), "size": size })
}

/// Sets a key of a JSON object.
fn merge(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}

/// Sets all keys of `other` in a JSON object.
fn merge_all(object: &mut Value, other: &Value) {
    for (key, value) in other.as_object().into_iter().flatten() {
        merge(object, key, value.clone());
    }
}
