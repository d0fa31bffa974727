//! Any server that speaks OpenAI's chat completions: llama-server, vLLM and the like. Closing the connection cancels.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Event, Finish, Message, Model, ModelError, ModelInfo, Request, Response, Role, Sampling, Sequence, Token,
    ToolCall, answer,
};
use crate::config::EndpointConfig;

/// Tries of one sample where the server is busy or the connection fails.
const ATTEMPTS: u32 = 4;

/// A server as a model.
#[derive(Debug)]
pub struct Endpoint {
    client: reqwest::Client,
    url: String,
    model: String,
    key: Option<String>,
    info: ModelInfo,
}

/// What one sample came to.
struct Sampled {
    sequence: Sequence,
    prompt_tokens: u32,
}

impl Endpoint {
    /// The server of `config`. Nothing is sent yet.
    ///
    /// # Errors
    /// If the URL is none, or the key's variable is not set.
    pub fn new(config: &EndpointConfig) -> Result<Self, ModelError> {
        let wrong =
            |why: String| ModelError::Unusable(format!("the endpoint {} cannot be used: {why}", config.url));
        let url = reqwest::Url::parse(&config.url).map_err(|error| wrong(error.to_string()))?;
        let local =
            url.host_str().is_some_and(|host| host == "localhost" || host == "127.0.0.1" || host == "[::1]");
        let key = match &config.key_env {
            Some(name) => {
                Some(std::env::var(name).map_err(|_| wrong(format!("set the variable {name} to its key")))?)
            }
            None => None,
        };
        let client = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(10))
            .read_timeout(Duration::from_secs(300))
            .build()
            .map_err(|error| wrong(error.to_string()))?;
        Ok(Self {
            client,
            url: format!("{}/chat/completions", config.url.trim_end_matches('/')),
            model: config.model.clone(),
            key,
            info: ModelInfo {
                name: config.model.clone(),
                window: config.window,
                agentic: config.agentic,
                sampling: Sampling { temperature: 0.8, top_p: 0.95, ..Sampling::GREEDY },
                thinking: false,
                remote: !local,
            },
        })
    }

    async fn sample(
        &self,
        request: &Request,
        index: usize,
        events: &mpsc::Sender<Event>,
    ) -> Result<Sampled, ModelError> {
        let mut wait = Duration::from_millis(300);
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let mut call = self.client.post(&self.url).json(&self.body(request, index));
            if let Some(key) = &self.key {
                call = call.bearer_auth(key);
            }
            match call.send().await {
                Ok(response) if response.status().is_success() => {
                    return self.read(request, index, response, events).await;
                }
                Ok(response) => {
                    let status = response.status();
                    let text = response.text().await.unwrap_or_default();
                    last = format!("{status}: {}", text.chars().take(300).collect::<String>());
                    if !(status.is_server_error() || status == reqwest::StatusCode::TOO_MANY_REQUESTS) {
                        return Err(ModelError::Request(format!(
                            "{} refuses the request ({last})",
                            self.url
                        )));
                    }
                }
                Err(error) => last = error.to_string(),
            }
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
        Err(ModelError::Unavailable(format!(
            "{} does not answer ({last}); start it, or remove [endpoint] from tadpole.toml",
            self.url
        )))
    }

    fn body(&self, request: &Request, index: usize) -> Value {
        let sampling = request.samples[index];
        let mut messages: Vec<Value> = request.messages.iter().map(message).collect();
        if !request.prefill.is_empty() {
            messages.push(json!({ "role": "assistant", "content": request.prefill }));
        }
        let mut body = json!({
            "model": self.model, "messages": messages, "stream": true, "stream_options": { "include_usage": true },
            "temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed,
            "max_tokens": request.max_tokens,
        });
        if !request.stop.is_empty() {
            body["stop"] = json!(request.stop);
        }
        if !request.tools.is_empty() {
            let tools = request.tools.iter().map(|tool| json!({ "type": "function", "function": tool }));
            body["tools"] = tools.collect();
        }
        if let Some(grammar) = &request.grammar {
            // llama-server's name for it; others ignore or refuse it.
            body["grammar"] = json!(grammar);
        }
        body
    }

    /// Reads server-sent events to their end.
    async fn read(
        &self,
        request: &Request,
        index: usize,
        mut response: reqwest::Response,
        events: &mpsc::Sender<Event>,
    ) -> Result<Sampled, ModelError> {
        let broken =
            |why: String| ModelError::Unavailable(format!("the answer of {} broke off: {why}", self.url));
        let mut stream = Stream::default();
        let mut buffer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| broken(error.to_string()))? {
            buffer.extend_from_slice(&chunk);
            while let Some(end) = buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let Some(data) =
                    line.trim().strip_prefix("data:").map(str::trim).filter(|it| *it != "[DONE]")
                else {
                    continue;
                };
                let event: Value = serde_json::from_str(data).map_err(|error| broken(error.to_string()))?;
                if let Some(text) = stream.add(&event) {
                    // Events are for people; nobody reading is fine.
                    let _ = events.send(Event::Text { index, text }).await;
                }
            }
        }
        Ok(stream.finish(request))
    }
}

/// What has come of one streamed answer.
#[derive(Default)]
struct Stream {
    text: String,
    reasoning: String,
    calls: BTreeMap<u64, (String, String, String)>,
    finish: Option<String>,
    prompt_tokens: u32,
    generated_tokens: u32,
}

impl Stream {
    /// Takes one event in; its new text.
    fn add(&mut self, event: &Value) -> Option<String> {
        let count = |key: &str| event["usage"][key].as_u64().map(|it| it as u32);
        self.prompt_tokens = count("prompt_tokens").unwrap_or(self.prompt_tokens);
        self.generated_tokens = count("completion_tokens").unwrap_or(self.generated_tokens);
        let choice = &event["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
        let delta = &choice["delta"];
        self.reasoning += delta["reasoning_content"].as_str().unwrap_or_default();
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let entry = self.calls.entry(call["index"].as_u64().unwrap_or(0)).or_default();
            entry.0 += call["id"].as_str().unwrap_or_default();
            entry.1 += call["function"]["name"].as_str().unwrap_or_default();
            entry.2 += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        let text = delta["content"].as_str().filter(|it| !it.is_empty())?;
        self.text += text;
        Some(text.to_owned())
    }

    fn finish(self, request: &Request) -> Sampled {
        let mut parsed = answer::parse(&self.text, &request.prefill, &request.tools, false);
        parsed.tool_calls.extend(self.calls.into_values().map(|(id, name, arguments)| ToolCall {
            id,
            name,
            arguments: serde_json::from_str(&arguments).unwrap_or_else(|_| json!({})),
        }));
        let finish = match self.finish.as_deref() {
            Some("length") => Finish::Length,
            _ if !parsed.tool_calls.is_empty() => Finish::ToolCalls,
            _ => Finish::Stop,
        };
        let sequence = Sequence {
            text: parsed.text,
            reasoning: if self.reasoning.is_empty() { parsed.reasoning } else { self.reasoning },
            tool_calls: parsed.tool_calls,
            tokens: Vec::<Token>::new(),
            generated_tokens: self.generated_tokens,
            finish,
        };
        Sampled { sequence, prompt_tokens: self.prompt_tokens }
    }
}

fn message(message: &Message) -> Value {
    let mut value = json!({ "role": message.role, "content": message.content });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({ "id": call.id, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments.to_string() } })
        });
        value["tool_calls"] = calls.collect();
    }
    if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id) {
        value["tool_call_id"] = json!(id);
    }
    value
}

#[async_trait]
impl Model for Endpoint {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn generate(
        &self,
        request: Request,
        events: mpsc::Sender<Event>,
        cancel: CancellationToken,
    ) -> Result<Response, ModelError> {
        let started = Instant::now();
        let mut running: FuturesUnordered<_> = (0..request.samples.len())
            .map(|index| {
                let (request, events) = (&request, &events);
                async move { (index, self.sample(request, index, events).await) }
            })
            .collect();
        let mut sequences = vec![None; request.samples.len()];
        let (mut prompt_tokens, mut generated_tokens) = (0, 0);
        loop {
            let next = tokio::select! {
                next = running.next() => next,
                () = cancel.cancelled() => return Err(ModelError::Cancelled),
            };
            let Some((index, sampled)) = next else { break };
            let sampled = sampled?;
            prompt_tokens = prompt_tokens.max(sampled.prompt_tokens);
            generated_tokens += sampled.sequence.generated_tokens;
            // Known only now; whoever stops at the first good answer still learns it.
            let _ = events.send(Event::Prompt { done: prompt_tokens, total: prompt_tokens }).await;
            let _ = events.send(Event::Finished { index, sequence: sampled.sequence.clone() }).await;
            sequences[index] = Some(sampled.sequence);
        }
        Ok(Response {
            sequences: sequences.into_iter().flatten().collect(),
            prompt_tokens,
            cached_tokens: 0,
            generated_tokens,
            elapsed: started.elapsed(),
        })
    }
}
