//! Work-done progress of one job. Sending is left to a task of its own, so that nobody waits for the client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower_lsp_server::Client;
use tower_lsp_server::gen_lsp_types::{ProgressNotification, ProgressParams, ProgressToken};

/// Reports that follow each other faster than this are merged.
const PACE: Duration = Duration::from_millis(100);

/// Shows the progress of one job. Its end is shown when the last clone is dropped, whatever happened.
#[derive(Clone)]
pub struct Reporter(Arc<Inner>);

struct Inner {
    token: String,
    last: Mutex<(String, Option<u32>)>,
    reports: mpsc::UnboundedSender<Report>,
}

enum Report {
    Step(String, Option<u32>),
    End(String),
}

impl Reporter {
    /// Begins to show progress under `token`.
    pub fn begin(client: Client, token: String, title: String) -> Self {
        let (reports, received) = mpsc::unbounded_channel();
        tokio::spawn(show(client, token.clone(), title, received));
        Self(Arc::new(Inner { token, last: Mutex::default(), reports }))
    }

    /// Shows nothing, but remembers the last report.
    pub fn silent() -> Self {
        let (reports, _) = mpsc::unbounded_channel();
        Self(Arc::new(Inner { token: String::new(), last: Mutex::default(), reports }))
    }

    /// The token.
    pub fn token(&self) -> &str {
        &self.0.token
    }

    /// Shows a step; the percentage stays where none is given.
    pub fn report(&self, message: String, percentage: Option<u32>) {
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        // A percentage never falls: the protocol allows clients to ignore it otherwise.
        let percentage = percentage.max(last.1);
        *last = (message.clone(), percentage);
        // Without a receiver the client cannot show it.
        let _ = self.0.reports.send(Report::Step(message, percentage));
    }

    /// Shows how it ended.
    pub fn end(&self, message: String) {
        let _ = self.0.reports.send(Report::End(message));
    }

    /// The last report.
    pub fn last(&self) -> (String, Option<u32>) {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn show(client: Client, token: String, title: String, mut reports: mpsc::UnboundedReceiver<Report>) {
    let token = ProgressToken::String(token);
    if client.create_work_done_progress(token.clone()).await.is_err() {
        return;
    }
    let send = async |value| {
        client
            .send_notification::<ProgressNotification>(ProgressParams { token: token.clone(), value })
            .await;
    };
    send(json!({ "kind": "begin", "title": title, "cancellable": true, "percentage": 0 })).await;
    let mut sent = Instant::now() - PACE;
    loop {
        let report = reports.recv().await;
        let (message, percentage) = match report {
            Some(Report::Step(message, percentage)) => (message, percentage),
            Some(Report::End(message)) => return send(json!({ "kind": "end", "message": message })).await,
            None => return send(json!({ "kind": "end" })).await,
        };
        if !reports.is_empty() && sent.elapsed() < PACE {
            continue;
        }
        sent = Instant::now();
        let mut value = json!({ "kind": "report", "message": message, "cancellable": true });
        if let Some(percentage) = percentage {
            value["percentage"] = percentage.into();
        }
        send(value).await;
    }
}
