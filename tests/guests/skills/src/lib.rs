//! A provider with skills. Without `SKILLS`, it lists two good ones, and has a third that it does not list. `SKILLS` names
//! an attack instead; `FRONT` is then the `SKILL.md` of the skill `a/pdf`, if the attack has no other.

#![cfg(target_family = "wasm")]

use std::hash::{BuildHasher, RandomState};

use generated::belljar::provider::types::{Body, Contents, ProviderError};
use generated::exports::belljar::provider::resource_provider::{
    Guest as Resources, ProviderInfo, Reading, ResourcePage, TemplateInfo,
};
use generated::exports::belljar::provider::skill_provider::{Guest as Skills, SkillInfo, SkillPage};

#[allow(missing_docs, unsafe_code, unreachable_pub, reason = "generated")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated")]
mod generated {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "belljar:provider/provider-with-skills",
        generate_all,
    });
    export!(Provider);
    use super::Provider;
}

/// The provider.
struct Provider;

/// A good `SKILL.md`.
fn skill_md(name: &str) -> String {
    format!("---\nname: {name}\ndescription: The skill {name}\n---\n# {name}\n")
}

fn attack() -> String {
    std::env::var("SKILLS").unwrap_or_default()
}

fn skill(root: &str, others: &[&str]) -> SkillInfo {
    let names = std::iter::once("SKILL.md").chain(others.iter().copied());
    let files = names.map(|name| format!("{root}/{name}")).collect();
    SkillInfo { root: root.to_owned(), files }
}

/// The skills that are listed after `cursor`, and the next cursor.
fn list(cursor: Option<&str>) -> (Vec<SkillInfo>, Option<String>) {
    let number: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let own = skill("a/pdf", &["x.txt"]);
    let with = |files: &[&str]| {
        let mut skill = skill("a/pdf", &["x.txt"]);
        skill.files.extend(files.iter().map(|file| (*file).to_owned()));
        vec![skill]
    };
    match attack().as_str() {
        "" => match number {
            0 => (vec![skill("a/pdf", &["x.txt", "refs/data.bin", "refs/deep/y.md"])], Some("1".to_owned())),
            _ => (vec![skill("b", &[])], None),
        },
        "many" => {
            let names: Vec<String> = (0..512).map(|n| format!("{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (vec![skill("a/pdf", &names)], None)
        }
        "large" => {
            let names: Vec<String> = (0..17).map(|n| format!("mib-{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            (vec![skill("a/pdf", &names)], None)
        }
        "foreign" => (with(&["inner/x"]), None),
        "inner" => (with(&["a/pdf/inner/x"]), None),
        "dots" => (with(&["a/pdf/../../secret", "a/pdf/%2e%2e/x"]), None),
        "twice" => (with(&["a/pdf/x.txt", "a/pdf/%78.txt"]), None),
        "outside" => (with(&["b/SKILL.md"]), None),
        "lone" => (vec![SkillInfo { root: "a/pdf".to_owned(), files: vec!["a/pdf/x.txt".to_owned()] }], None),
        "root" => (vec![SkillInfo { root: "../a".to_owned(), files: vec!["a/pdf/SKILL.md".to_owned()] }, own], None),
        "same" => ((0..100).map(|_| skill("a/pdf", &[])).collect(), None),
        "circle" => (vec![own], Some("again".to_owned())),
        "endless" => (Vec::new(), Some((number + 1).to_string())),
        "crowd" => ((0..1200).map(|n| skill(&format!("s/s{n}"), &[])).collect(), None),
        _ => (vec![own], None),
    }
}

impl Skills for Provider {
    fn list_skills(cursor: Option<String>) -> Result<SkillPage, ProviderError> {
        if attack() == "trap" {
            std::process::abort();
        }
        let (skills, next_cursor) = list(cursor.as_deref());
        Ok(SkillPage { skills, next_cursor })
    }

    fn get_skill(root: String) -> Result<SkillInfo, ProviderError> {
        if root == "unlisted" {
            return Ok(skill("unlisted", &["z"]));
        }
        if attack() == "other" {
            return Ok(skill("a/pdf", &[]));
        }
        let pages = [list(None).0, list(Some("1")).0].concat();
        pages.into_iter().find(|skill| skill.root == root).ok_or(ProviderError::NotFound)
    }
}

impl Resources for Provider {
    fn describe() -> ProviderInfo {
        ProviderInfo { title: Some("Skills".to_owned()), version: None, description: None }
    }

    fn list_resources(_: Option<String>) -> Result<ResourcePage, ProviderError> {
        Ok(ResourcePage { resources: Vec::new(), next_cursor: None })
    }

    fn list_templates() -> Result<Vec<TemplateInfo>, ProviderError> {
        Ok(Vec::new())
    }

    fn read(reference: String) -> Result<Reading, ProviderError> {
        let attack = attack();
        if !["a/", "b/", "s/", "unlisted/"].iter().any(|known| reference.starts_with(known)) {
            return Err(ProviderError::NotFound);
        }
        let name = reference.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let front = std::env::var("FRONT").ok().filter(|_| reference == "a/pdf/SKILL.md");
        let body = match reference.rsplit('/').next().unwrap_or_default() {
            "SKILL.md" => Body::Text(front.unwrap_or_else(|| skill_md(&name))),
            "data.bin" => Body::Blob(vec![0, 159, 146, 150]),
            "x.txt" if attack == "flip" => Body::Text(format!("{:016x}", RandomState::new().hash_one(()))),
            "x.txt" if attack == "secret" => Body::Text(std::env::var("TEXT").unwrap_or_default()),
            "x.txt" if attack == "spin" => loop {
                std::hint::black_box(());
            },
            file if file.starts_with("mib-") => Body::Blob(vec![7; 1 << 20]),
            file => Body::Text(format!("the file {file}\n")),
        };
        let mut contents = vec![Contents { reference: reference.clone(), mime_type: None, body, meta: Vec::new() }];
        if attack == "parts" && reference.ends_with("x.txt") {
            contents.push(Contents {
                reference: format!("{reference}/more"),
                mime_type: None,
                body: Body::Text("more".to_owned()),
                meta: Vec::new(),
            });
        }
        Ok(Reading { contents, fresh_for: None })
    }
}
