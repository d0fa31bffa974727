//! Configuration: `tadpole.toml` of the person, `.tadpole.toml` of a repository, and where each value came
//! from (for `tadpole doctor`). A repository's file cannot choose a model or an endpoint.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use tasks::grade::EditPolicy;
use tasks::runner::TestConfig;

use crate::agent::edit::EditFormat;

/// Name of the repository's file.
pub const REPOSITORY_FILE: &str = ".tadpole.toml";

/// What a patch may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Edit {
    /// Source code only.
    Code,
    /// Tests only.
    Tests,
    /// Source code and tests.
    Both,
    /// Source code, tests, configuration and lock files.
    All,
}

impl From<Edit> for EditPolicy {
    fn from(edit: Edit) -> Self {
        Self { code: edit != Edit::Tests, tests: edit != Edit::Code, configuration: edit == Edit::All }
    }
}

/// An OpenAI-compatible server to use in place of the local engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointConfig {
    /// Base URL, ending in `/v1`.
    pub url: String,
    /// Model name as the server knows it.
    pub model: String,
    /// Name of the environment variable that holds the key, if one is needed.
    pub key_env: Option<String>,
    /// Tokens that fit in a request.
    #[serde(default = "default_window")]
    pub window: u32,
    /// Whether the model is good enough for the multi-turn agent.
    #[serde(default)]
    pub agentic: bool,
}

fn default_window() -> u32 {
    16_384
}

/// The person's own configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Registry name or GGUF path.
    pub model: Option<String>,
    /// A server to use instead of the local engine; code then leaves the process, and the machine if it is elsewhere.
    pub endpoint: Option<EndpointConfig>,
    /// Answers that `repair` samples for one failing test.
    pub samples: Option<usize>,
    /// What a patch may touch.
    pub edit: Option<Edit>,
    /// How a model is asked for a change.
    pub edit_format: EditFormat,
}

impl Config {
    /// Answers that `repair` samples when nothing else is said.
    pub const SAMPLES: usize = 16;
}

/// A repository's configuration.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepositoryConfig {
    /// How its tests are run.
    pub tests: TestConfig,
    /// What a patch may touch.
    pub edit: Option<Edit>,
}

/// The configuration at `path`; the default when there is no such file.
///
/// # Errors
/// One line with the file and the place of the mistake.
pub fn load<T: serde::de::DeserializeOwned + Default>(path: &Path) -> Result<T, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// The configuration in `text`, which was read from `path`.
///
/// # Errors
/// One line with the file and the place of the mistake.
pub fn parse<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count();
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        format!("{}:{line}: {message}; correct the file and run the command again", path.display())
    })
}

/// The person's configuration file: `tadpole.toml` in the user's configuration directory.
pub fn user_file() -> Option<PathBuf> {
    directories::ProjectDirs::from("", "", "tadpole").map(|dirs| dirs.config_dir().join("tadpole.toml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = parse::<Config>(Path::new("tadpole.toml"), "samples = 4\nmodle = \"x\"\n").unwrap_err();
        assert!(error.starts_with("tadpole.toml:2: "), "{error}");
        assert!(error.contains("modle"), "{error}");
    }

    #[test]
    fn a_missing_file_is_the_default() {
        let config: Config = load(Path::new("/nonexistent/tadpole.toml")).unwrap();
        assert_eq!(config, Config::default());
    }

    #[test]
    fn a_repository_cannot_choose_an_endpoint() {
        let text = "[endpoint]\nurl = \"https://example.org/v1\"\nmodel = \"m\"\n";
        assert!(parse::<RepositoryConfig>(Path::new(REPOSITORY_FILE), text).is_err());
    }

    #[test]
    fn edit_chooses_what_may_be_touched() {
        let policy = EditPolicy::from(Edit::Both);
        assert_eq!((policy.code, policy.tests, policy.configuration), (true, true, false));
        assert_eq!(EditPolicy::from(Edit::Code), EditPolicy::default());
    }
}
