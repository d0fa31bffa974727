//! `tadpole models list|pull|use`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::{CliError, Run};
use crate::model::registry::{self, Entry};
use crate::model::{ModelError, download};

/// Arguments of `tadpole models`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List the known models and what is installed.
    List,
    /// Download a model (default: the one in force).
    Pull {
        /// Name from the list.
        name: Option<String>,
    },
    /// Choose the model to use from now on.
    Use {
        /// Name from the list, or the path of a GGUF file.
        name: String,
    },
}

impl Args {
    /// Whether one JSON object is wanted.
    pub fn json(&self) -> bool {
        self.json
    }
}

/// Runs `tadpole models`.
pub async fn run(args: Args, run: Run) -> Result<ExitCode, CliError> {
    match args.action {
        Action::List => list(&run, args.json)?,
        Action::Pull { name } => pull(&run, name, args.json).await?,
        Action::Use { name } => {
            registry::choose(&run.context.home, &name)?;
            print(args.json, &json!({ "model": name }), &format!("From now on {name} is used."));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(run: &Run, as_json: bool) -> Result<(), CliError> {
    let home = &run.context.home;
    let chosen = registry::chosen(home, run.context.config.model.as_deref());
    let entries = registry::entries()?;
    let row = |entry: &Entry| {
        json!({
            "name": entry.name, "architecture": entry.architecture, "licence": entry.licence, "size": entry.size,
            "installed": registry::is_installed(home, entry), "in_use": entry.name == chosen, "about": entry.about,
        })
    };
    if as_json {
        println!("{}", json!({ "models": entries.iter().map(row).collect::<Vec<_>>(), "in_use": chosen }));
        return Ok(());
    }
    for entry in &entries {
        let mark = if entry.name == chosen { '*' } else { ' ' };
        let state = if registry::is_installed(home, entry) { "installed" } else { "" };
        let size = entry.size.map(|size| format!("{} MB", size / 1_000_000)).unwrap_or_default();
        println!("{mark} {:<20} {size:>8}  {:<11} {state:<10} {}", entry.name, entry.licence, entry.about);
    }
    if entries.iter().all(|entry| entry.name != chosen) {
        println!("* {chosen}");
    }
    Ok(())
}

async fn pull(run: &Run, name: Option<String>, as_json: bool) -> Result<(), CliError> {
    let home = &run.context.home;
    let name = name.unwrap_or_else(|| registry::chosen(home, run.context.config.model.as_deref()));
    let entry = registry::entry(&name)?;
    let bar = std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new(0);
        if let Ok(style) =
            ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar
    });
    let last = Mutex::new(Instant::now() - Duration::from_secs(60));
    let show = |done: u64, total: u64| match &bar {
        Some(bar) => {
            bar.set_length(total.max(done));
            bar.set_position(done);
        }
        None => {
            let Ok(mut last) = last.lock() else { return };
            if last.elapsed() > Duration::from_secs(5) {
                *last = Instant::now();
                eprintln!("{name}: {} of {} MB", done / 1_000_000, total / 1_000_000);
            }
        }
    };
    let path = download::pull(home, &entry, &show, &run.cancel).await?;
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let text = format!("{} is installed at {}.", entry.name, path.display());
    print(as_json, &json!({ "model": entry.name, "path": path }), &text);
    Ok(())
}

fn print(as_json: bool, object: &serde_json::Value, text: &str) {
    if as_json { println!("{object}") } else { println!("{text}") }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Cancelled => Self::Interrupted,
            other => Self::Usage(other.to_string()),
        }
    }
}
