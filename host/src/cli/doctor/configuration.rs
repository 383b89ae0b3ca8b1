//! The configuration, its components, and the paths and addresses in it.

use super::finding::SetupFinding;
use crate::catalog;
use crate::config::Config;
use crate::model::command;
use crate::server::location::{self, LocationArgs};
use crate::server::{configuration, directories, listening, pins};

/// Reads the configuration. Returns it, if it is valid, and the findings.
pub(super) fn findings(at: &LocationArgs) -> (Option<Config>, Vec<SetupFinding>) {
    const AREA: &str = "config";
    let path = location::config_path(at).map(|(path, _)| path.display().to_string()).unwrap_or_default();
    let mut config = match configuration::file(at) {
        Ok(config) => config,
        Err(why) => {
            return (
                None,
                vec![SetupFinding::bad(AREA, why.to_string(), format!("mend {path}, or write another: belljar init"))],
            );
        }
    };
    let mut all = vec![match config.file.is_some() {
        true => SetupFinding::good(AREA, format!("{path} is valid")),
        false => SetupFinding::good(AREA, format!("there is no {path}; belljar serves the plugin directory as it is")),
    }];
    if let Err(why) = configuration::read_ambient(&mut config, &[]) {
        all.push(SetupFinding::bad(AREA, why.to_string(), format!("mend  ca  under [network] in {path}")));
    }
    all.extend(components(&config));
    all.extend(paths(&config));
    all.extend(address(&config));
    (Some(config), all)
}

fn components(config: &Config) -> Vec<SetupFinding> {
    const AREA: &str = "providers";
    let plugins = config.plugins.display().to_string();
    let dir = match directories::open_plugins(config) {
        Ok(dir) => dir,
        Err(why) => {
            return vec![SetupFinding::bad(
                AREA,
                why.to_string(),
                format!("run: mkdir -p {}", command::shell_quoted(&plugins)),
            )];
        }
    };
    let found = match catalog::read_components(config, &dir, |_| true) {
        Ok(found) => found,
        Err(error) => {
            return vec![SetupFinding::bad(AREA, format!("\"{plugins}\" cannot be read: {error}"), "make it readable")];
        }
    };
    let lock = pins::read(&config.lock).unwrap_or_default();
    let mut all = Vec::new();
    let mut good = 0;
    for one in &found {
        match &one.component {
            Err(why) => all.push(SetupFinding::bad(
                AREA,
                format!("\"{}\" is refused: {why}", one.file),
                format!("replace the file, or run: belljar remove {}", one.name),
            )),
            Ok((digest, _)) if lock.pin(&one.name).is_some_and(|pin| pin.digest != *digest) => {
                all.push(SetupFinding::bad(
                    AREA,
                    format!("\"{}\" is in quarantine: its component changed since its grants were given", one.name),
                    format!("run: {}", command::line(["trust", one.name.as_str()])),
                ))
            }
            Ok(_) => good += 1,
        }
    }
    for (name, own) in &config.mounts {
        if !found.iter().any(|one| one.name == *name) {
            let file = own.component.clone().unwrap_or_else(|| format!("{name}.wasm"));
            all.push(SetupFinding::bad(
                AREA,
                format!("the mount \"{name}\" has no component: there is no \"{file}\" in \"{plugins}\""),
                format!("put the file there, or run: belljar remove {name}"),
            ));
        }
    }
    all.insert(
        0,
        SetupFinding::good(AREA, format!("{good} of {} components in \"{plugins}\" can be served", found.len())),
    );
    all
}

/// What the grants name: directories, secrets, certificates.
fn paths(config: &Config) -> Vec<SetupFinding> {
    // Configuring a grant may register with a runtime's event loop. No event is awaited here.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let _entered = runtime.enter();
    let mut all = Vec::new();
    for (name, own) in &config.mounts {
        if let Err(why) = own.grants.configure(&config.ambient) {
            let revoke = command::line(["revoke", name.as_str(), "--all"]);
            all.push(SetupFinding::bad(
                "paths",
                format!("the grants of \"{name}\" cannot be used: {why}"),
                format!("put back what is missing, or run: {revoke}"),
            ));
        }
    }
    all
}

/// The address of the HTTP endpoint.
fn address(config: &Config) -> Vec<SetupFinding> {
    const AREA: &str = "port";
    let Some(address) = config.serve.http else { return Vec::new() };
    let checked = listening::check_address(&address, Some(config)).and_then(|()| listening::listen(address));
    vec![match checked {
        Ok(_) => SetupFinding::good(AREA, format!("{address} is free")),
        Err(why) => SetupFinding::warning(
            AREA,
            why.to_string(),
            "if this is not a belljar of yours, choose another address under [serve]",
        ),
    }]
}
