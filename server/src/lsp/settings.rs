//! The section `tadpole` of the client's settings. What is wrong in it is said once and otherwise ignored.

use serde_json::Value;

use crate::config::Edit;

/// Settings of one workspace folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `codeActions`: offer code actions.
    pub code_actions: bool,
    /// `codeLens`: offer lenses on tests.
    pub code_lens: bool,
    /// `confirm`: ask before a verified fix is applied. Changes to tests and configuration are always asked for.
    pub confirm: bool,
    /// `edit`: what a fix may touch.
    pub edit: Option<Edit>,
    /// `samples`: answers to sample for one failing test.
    pub samples: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { code_actions: true, code_lens: true, confirm: true, edit: None, samples: None }
    }
}

impl Settings {
    /// The settings in `value` (the section itself, or an object that holds it), and one line for each mistake.
    pub fn parse(value: &Value) -> (Self, Vec<String>) {
        let mut settings = Self::default();
        let mut mistakes = Vec::new();
        let section = value.get("tadpole").unwrap_or(value);
        if section.is_null() {
            return (settings, mistakes);
        }
        let Some(section) = section.as_object() else {
            return (settings, vec!["the setting tadpole must be an object".into()]);
        };
        for (key, value) in section {
            if value.is_null() {
                continue;
            }
            let wrong = match key.as_str() {
                "codeActions" => set(&mut settings.code_actions, value.as_bool(), "true or false"),
                "codeLens" => set(&mut settings.code_lens, value.as_bool(), "true or false"),
                "confirm" => set(&mut settings.confirm, value.as_bool(), "true or false"),
                "edit" => set(
                    &mut settings.edit,
                    serde_json::from_value(value.clone()).ok(),
                    "\"code\", \"tests\", \"both\" or \"all\"",
                ),
                "samples" => {
                    let samples =
                        value.as_u64().filter(|it| (1..=1024).contains(it)).map(|it| Some(it as usize));
                    set(&mut settings.samples, samples, "a whole number from 1 to 1024")
                }
                _ => {
                    mistakes.push(format!("the setting tadpole.{key} is not known and is ignored"));
                    None
                }
            };
            mistakes.extend(wrong.map(|right| format!("the setting tadpole.{key} must be {right}")));
        }
        (settings, mistakes)
    }
}

/// Sets `place`, or says what the value must be.
fn set<T>(place: &mut T, value: Option<T>, right: &'static str) -> Option<&'static str> {
    match value {
        Some(value) => {
            *place = value;
            None
        }
        None => Some(right),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_section_may_come_bare_or_wrapped() {
        let bare = Settings::parse(&json!({ "codeLens": false, "samples": 4, "edit": "both" }));
        let wrapped =
            Settings::parse(&json!({ "tadpole": { "codeLens": false, "samples": 4, "edit": "both" } }));
        assert_eq!(bare, wrapped);
        let expected =
            Settings { code_lens: false, samples: Some(4), edit: Some(Edit::Both), ..Settings::default() };
        assert_eq!(bare, (expected, Vec::new()));
    }

    #[test]
    fn a_mistake_is_named_and_the_default_stays() {
        let (settings, mistakes) = Settings::parse(&json!({ "confirm": "yes", "colour": 1 }));
        assert_eq!(settings, Settings::default());
        assert_eq!(
            mistakes,
            [
                "the setting tadpole.confirm must be true or false",
                "the setting tadpole.colour is not known and is ignored",
            ]
        );
    }
}
