//! The five tools: what is offered, and how a call is answered. Every problem is an observation of the form
//! `ErrorType: message`, never an end of the episode.

use serde_json::{Map, Value, json};
use tasks::runner::Project;
use tasks::sandbox::Sandbox;
use tasks::workspace::Workspace;
use tokio_util::sync::CancellationToken;

use super::super::AgentError;
use super::{bash, files};
use crate::model::{Tool, ToolCall};

/// What calls work on.
#[derive(Clone, Copy)]
pub struct Toolbox<'a> {
    /// The agent's own copy of the repository.
    pub workspace: &'a Workspace,
    /// How its commands run.
    pub project: &'a Project,
    /// Where they run.
    pub sandbox: &'a Sandbox,
    /// Stops them.
    pub cancel: &'a CancellationToken,
}

/// Why a call has no result; the text is what the model sees.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

impl Refusal {
    /// An observation of the form `kind: message`.
    pub fn new(kind: &str, message: impl std::fmt::Display) -> Self {
        Self(format!("{kind}: {message}"))
    }
}

impl Toolbox<'_> {
    /// The observation of one call.
    ///
    /// # Errors
    /// Only if cancelled, or if commands cannot be run at all.
    pub async fn call(&self, call: &ToolCall) -> Result<String, AgentError> {
        let none = Map::new();
        let arguments = Arguments(call.arguments.as_object().unwrap_or(&none));
        let answer = match call.name.as_str() {
            "Read" => files::read(self.workspace, &arguments),
            "Write" => files::write(self.workspace, &arguments),
            "Edit" => files::edit(self.workspace, &arguments),
            "Glob" => files::glob(self.workspace, &arguments),
            "Bash" => bash::run(self, &arguments).await?,
            other => Err(Refusal::new(
                "UnknownTool",
                format!("there is no tool {other}; use Read, Write, Edit, Glob or Bash"),
            )),
        };
        Ok(answer.unwrap_or_else(|refusal| refusal.0))
    }
}

/// The arguments of a call. Models write numbers and truth values as text too.
pub struct Arguments<'a>(pub &'a Map<String, Value>);

impl Arguments<'_> {
    /// A text that must be there.
    pub fn text(&self, name: &str) -> Result<&str, Refusal> {
        self.optional(name).ok_or_else(|| Refusal::new("MissingArgument", format!("`{name}` is required")))
    }

    /// A text that may be there.
    pub fn optional(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A whole number that may be there.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        let value = match self.0.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(value) => value,
        };
        let number = match value {
            Value::Number(number) => {
                number.as_u64().or_else(|| number.as_f64().filter(|it| *it >= 0.0).map(|it| it as u64))
            }
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        number
            .map(Some)
            .ok_or_else(|| Refusal::new("InvalidArgument", format!("`{name}` must be a whole number")))
    }

    /// A truth value; missing is false.
    pub fn flag(&self, name: &str) -> bool {
        match self.0.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }
}

/// The tools as they are offered to the model.
pub fn offered() -> Vec<Tool> {
    let tool = |name: &str, description: &str, parameters: &[(&str, &str, &str)], required: &[&str]| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object",
            "properties": parameters
                .iter()
                .map(|(name, kind, about)| ((*name).to_owned(), json!({ "type": kind, "description": about })))
                .collect::<Map<String, Value>>(),
            "required": required,
        }),
    };
    vec![
        tool(
            "Read",
            "Reads a text file and shows its lines with their numbers.",
            &[
                ("file_path", "string", "The file."),
                ("offset", "integer", "First line, counted from 1."),
                ("limit", "integer", "Number of lines."),
            ],
            &["file_path"],
        ),
        tool(
            "Write",
            "Writes a file; what was in it is replaced.",
            &[("file_path", "string", "The file."), ("content", "string", "Its whole content.")],
            &["file_path", "content"],
        ),
        tool(
            "Edit",
            "Replaces text in a file. The old text must occur exactly once, unless all are to be replaced.",
            &[
                ("file_path", "string", "The file."),
                ("old_string", "string", "The text to replace."),
                ("new_string", "string", "The text to put there."),
                ("replace_all", "boolean", "Whether to replace every occurrence."),
            ],
            &["file_path", "old_string", "new_string"],
        ),
        tool(
            "Glob",
            "Lists files that match a pattern such as **/*.py.",
            &[("pattern", "string", "The pattern."), ("path", "string", "Directory to look in.")],
            &["pattern"],
        ),
        tool(
            "Bash",
            "Runs a shell command in the repository.",
            &[
                ("command", "string", "The command."),
                ("description", "string", "What it is for."),
                ("timeout", "integer", "Seconds after which it is stopped."),
            ],
            &["command"],
        ),
    ]
}

/// `text` with its end cut off after `limit` characters, saying how many were cut.
pub fn cut(text: &str, limit: usize) -> String {
    let Some((at, _)) = text.char_indices().nth(limit) else { return text.to_owned() };
    format!("{}\n... [{} characters cut]", &text[..at], text[at..].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_models_write_them() {
        let object = json!({ "a": "12", "b": 3.0, "c": "True", "d": "x" });
        let arguments = Arguments(object.as_object().unwrap());
        assert_eq!(arguments.number("a"), Ok(Some(12)));
        assert_eq!(arguments.number("b"), Ok(Some(3)));
        assert_eq!(arguments.number("z"), Ok(None));
        assert!(arguments.number("d").is_err());
        assert!(arguments.flag("c") && !arguments.flag("d"));
        assert_eq!(arguments.text("z"), Err(Refusal("MissingArgument: `z` is required".to_owned())));
    }

    #[test]
    fn the_five_tools_have_the_names_and_parameters_of_training() {
        let shape: Vec<(String, Vec<String>)> = offered()
            .into_iter()
            .map(|tool| {
                (tool.name, tool.parameters["properties"].as_object().unwrap().keys().cloned().collect())
            })
            .collect();
        let expected = [
            ("Read", vec!["file_path", "offset", "limit"]),
            ("Write", vec!["file_path", "content"]),
            ("Edit", vec!["file_path", "old_string", "new_string", "replace_all"]),
            ("Glob", vec!["pattern", "path"]),
            ("Bash", vec!["command", "description", "timeout"]),
        ];
        let expected: Vec<(String, Vec<String>)> = expected
            .into_iter()
            .map(|(name, parameters)| (name.to_owned(), parameters.into_iter().map(str::to_owned).collect()))
            .collect();
        assert_eq!(shape, expected);
    }

    #[test]
    fn a_cut_says_how_much_is_missing() {
        assert_eq!(cut("éàü", 2), "éà\n... [1 characters cut]");
        assert_eq!(cut("ab", 2), "ab");
    }
}
