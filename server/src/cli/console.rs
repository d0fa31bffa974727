//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::agent::Progress;

/// Shows the progress of one request.
pub struct Console {
    bar: Option<ProgressBar>,
    last: Mutex<String>,
}

impl Console {
    /// On standard error.
    pub fn stderr() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(100);
            if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:24}] {elapsed} {wide_msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(120));
            bar
        });
        Self { bar, last: Mutex::default() }
    }

    /// Shows a step.
    pub fn show(&self, progress: Progress) {
        if let Some(bar) = &self.bar {
            if let Some(fraction) = progress.fraction {
                bar.set_position((fraction.clamp(0.0, 1.0) * 100.0) as u64);
            }
            bar.set_message(progress.message);
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != progress.message {
            eprintln!("{}", progress.message);
            *last = progress.message;
        }
    }

    /// Removes the bar.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
