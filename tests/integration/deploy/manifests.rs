//! The manifests for Kubernetes. `kubectl kustomize` builds each, the schemas of Kubernetes and the rules of Checkov accept each, and
//! both find planted mistakes. What the manifests say is compared with each other in `values`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use belljar_tests::{Site, places};
use serde_json::Value;

use super::{command, fails, replaced, run, source, succeeds, write_secrets};
use crate::support::stdout_and_stderr;

/// The directories of `deploy/kubernetes` that can be applied.
pub(super) const KUSTOMIZATIONS: [&str; 4] = ["base", "overlays/ingress", "overlays/minimal", "overlays/redis"];

/// The rules of Checkov that a resource may leave out. Its annotation gives the reason.
const LEFT_OUT: [&str; 3] = ["CKV_DOCKER_2", "CKV_K8S_153", "CKV_K8S_43"];

/// A pod without any restriction.
const OPEN_POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: planted, namespace: planted}
spec:
  containers:
  - {name: planted, image: \"planted:1\", securityContext: {privileged: true}}
";

/// Builds each kustomization, with the files that the operator makes. Returns the paths of the manifests, in the order of
/// [`KUSTOMIZATIONS`].
pub(super) fn rendered(kubectl: &Path, site: &Site) -> Vec<PathBuf> {
    let copy = site.path("kubernetes");
    let mut copying = Command::new("cp");
    copying.arg("-r").arg(source("kubernetes")).arg(&copy);
    succeeds(copying);
    write_secrets(site, "kubernetes/base/secrets");
    let render = |name: &&str| {
        let built = run(command(kubectl, &["kustomize", copy.join(name).to_str().expect("UTF-8")]));
        assert!(built.status.success(), "{name}: {}", stdout_and_stderr(&built));
        site.write(format!("rendered/{}.yaml", name.replace('/', "-")), built.stdout)
    };
    KUSTOMIZATIONS.iter().map(render).collect()
}

/// The directories below `at` with a file `kustomization.yaml`, relative to `root`.
fn kustomizations(root: &Path, at: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(at).expect("a directory of the repository") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(kustomizations(root, &path));
        } else if path.ends_with("kustomization.yaml") {
            found.push(at.strip_prefix(root).expect("below it").to_str().expect("UTF-8").to_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn each_kustomization_is_tested() {
    let root = source("kubernetes");
    assert_eq!(kustomizations(&root, &root), KUSTOMIZATIONS);
}

#[test]
fn kubernetes_accepts_each_manifest() {
    let (Some(kubectl), Some(validate)) = (places::deploy_tool("kubectl"), places::deploy_tool("kubernetes-validate"))
    else {
        return;
    };
    let site = Site::new();
    let manifests = rendered(&kubectl, &site);
    let check = |files: &[PathBuf]| {
        let mut command = command(&validate, &["--strict", "--quiet"]);
        command.args(files);
        command
    };
    // A kind without a schema is a warning.
    for line in succeeds(check(&manifests)).lines() {
        assert!(line.contains("kind ServiceMonitor with api version monitoring.coreos.com/v1"), "{line}");
    }
    let base = fs::read_to_string(&manifests[0]).expect("written above");
    for (old, new) in [
        ("readOnlyRootFilesystem", "readOnlyRootFileSystem"),
        ("terminationGracePeriodSeconds: 60", "terminationGracePeriodSeconds: 60s"),
        ("kind: PodDisruptionBudget", "kind: PodDisruptionBuget"),
    ] {
        let planted = site.write("planted.yaml", replaced(&base, &[(old, new)]));
        let output = run(check(&[planted]));
        let shown = stdout_and_stderr(&output);
        assert!(!output.status.success() || shown.contains("PodDisruptionBuget"), "{new}: {shown}");
    }
}

#[test]
fn a_kustomization_without_the_files_of_the_operator_is_refused() {
    let Some(kubectl) = places::deploy_tool("kubectl") else { return };
    let site = Site::new();
    let mut copying = Command::new("cp");
    copying.arg("-r").arg(source("kubernetes/base")).arg(site.path("base"));
    succeeds(copying);
    fs::remove_dir_all(site.path("base/secrets")).ok();
    let refused = fails(command(&kubectl, &["kustomize", site.path("base").to_str().expect("UTF-8")]));
    assert!(refused.contains("secrets/keys.toml"), "{refused}");
}

#[test]
fn checkov_accepts_each_manifest() {
    let (Some(kubectl), Some(checkov)) = (places::deploy_tool("kubectl"), places::deploy_tool("checkov")) else {
        return;
    };
    let site = Site::new();
    rendered(&kubectl, &site);
    fs::copy(source("kubernetes/plugins/Dockerfile"), site.path("rendered/Dockerfile")).expect("the site is writable");
    site.write("rendered/planted.yaml", OPEN_POD);
    let place = site.path("rendered");
    // Without `--skip-download`, it asks its maker for more.
    let arguments = ["--framework", "kubernetes", "dockerfile", "--skip-download", "--compact", "--output", "json"];
    let mut command = command(&checkov, &arguments);
    command.arg("--directory").arg(&place).current_dir(&place);
    let output = run(command);
    let reports: Vec<Value> = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stdout_and_stderr(&output)));
    let checks = |kind: &str| -> Vec<Value> {
        reports.iter().flat_map(|report| report["results"][kind].as_array().expect("a list").clone()).collect()
    };
    assert_eq!((reports.len(), checks("parsing_errors").len()), (2, 0));
    let (planted, failed): (Vec<_>, Vec<_>) = checks("failed_checks")
        .into_iter()
        .partition(|check| check["file_path"].as_str().expect("a path").ends_with("planted.yaml"));
    assert!(planted.iter().any(|check| check["check_id"] == "CKV_K8S_16"), "a privileged container: {planted:?}");
    let name = |check: &Value| format!("{} {} {}", check["check_id"], check["check_name"], check["resource"]);
    assert!(failed.is_empty(), "{:#?}", failed.iter().map(name).collect::<Vec<_>>());
    let skipped = checks("skipped_checks");
    for check in &skipped {
        let reason = check["check_result"]["suppress_comment"].as_str().unwrap_or_default();
        assert!(reason.split(' ').count() > 4, "no reason: {}", name(check));
    }
    let mut rules: Vec<_> = skipped.iter().map(|check| check["check_id"].as_str().expect("a name")).collect();
    rules.sort_unstable();
    rules.dedup();
    assert_eq!(rules, LEFT_OUT);
}
