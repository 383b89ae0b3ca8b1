//! The conformance checks of `completion`.

use super::{Complete, MAX_SUGGESTIONS};
use crate::interfaces::conformance::{Check, ConformanceCaller, ConformanceRun, shown};
use crate::model::template::variables;
use crate::model::{CompletionInput, ReadError};

/// The most variables that are completed.
const MAX_VARIABLES: usize = 20;

/// Runs the checks of this interface.
pub(in crate::interfaces) async fn check<A: ConformanceCaller>(run: &mut ConformanceRun<'_, A>) {
    run.check_completion().await;
}

impl<A: ConformanceCaller> ConformanceRun<'_, A> {
    async fn check_completion(&mut self) {
        let mut check = Check::new("completion");
        let templates = self.templates.iter().map(|entry| entry.template.clone());
        let mut requests: Vec<(String, String)> = Vec::new();
        for template in templates {
            requests.extend(variables(&template).into_iter().map(|name| (template.clone(), name.to_owned())));
        }
        requests.truncate(MAX_VARIABLES);
        let mut suggestions = 0;
        for (template, name) in &requests {
            for value in ["", "a", "\u{2603}%\"'"] {
                let (template, name, value) = (template.clone(), name.clone(), value.to_owned());
                let what = format!("complete of {} in {}", shown(&name), shown(&template));
                let request = CompletionInput { template, name, value, resolved: Vec::new() };
                match self.call(Complete(request.clone())).await {
                    Ok(given) => {
                        suggestions += given.values.len();
                        let shown = self.checked(&Complete(request), given.clone()).unwrap_or_default();
                        if given.values != shown.values && given.values.len() <= MAX_SUGGESTIONS {
                            check.warn(format!("{what} gives values that clients do not get unchanged: duplicates, long ones, control characters, or names of another mount"));
                        }
                    }
                    Err(error @ (ReadError::Unavailable(_) | ReadError::ProviderUnavailable(_))) => {
                        check.warn(format!("{what}: {error}"))
                    }
                    Err(error) => check.unexpected(&what, &error, "suggestions, or none"),
                }
            }
        }
        if requests.is_empty() {
            check.warn("it exports completion, but lists no template with a variable".to_owned());
        }
        self.found(check.finding(format!("{suggestions} suggestions for {} variables", requests.len())));
    }
}
