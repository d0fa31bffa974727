//! A language client that counts columns in UTF-16, as the protocol's default says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli;
use crate::home::Home;

/// How long a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(240);

/// A client with its server.
pub struct Client {
    pub child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    last: u64,
    /// Open documents: version and text.
    pub documents: BTreeMap<String, (i64, String)>,
    /// Notifications and requests of the server that were not taken yet, in order.
    pub inbox: Vec<Value>,
    /// What is chosen when the server asks.
    pub answers: Vec<String>,
}

/// The URI of a file.
pub fn uri(path: &Path) -> String {
    let text = path.to_str().unwrap();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
    let encoded =
        text.bytes().map(|it| if plain(it) { (it as char).to_string() } else { format!("%{it:02X}") });
    format!("file://{}", encoded.collect::<String>())
}

/// What a client such as VS Code can do, without annotations.
pub fn capabilities() -> Value {
    json!({
        "general": { "positionEncodings": ["utf-16"] },
        "workspace": {
            "applyEdit": true,
            "workspaceFolders": true,
            "workspaceEdit": { "documentChanges": true, "resourceOperations": ["create", "delete", "rename"] },
        },
        "textDocument": { "codeAction": { "disabledSupport": true, "dataSupport": true } },
        "window": { "workDoneProgress": true },
    })
}

impl Client {
    /// Starts a server and shakes hands.
    pub fn start(home: &Home, root: &Path, capabilities: Value) -> Self {
        let mut client = Self::spawn(home);
        client.initialize(root, capabilities);
        client
    }

    /// Starts a server.
    pub fn spawn(home: &Home) -> Self {
        let mut command = cli::command(home, &["lsp"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read(&mut output) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            input,
            messages,
            last: 0,
            documents: BTreeMap::new(),
            inbox: Vec::new(),
            answers: vec!["Trust".into(), "Apply".into()],
        }
    }

    /// `initialize` and `initialized`.
    pub fn initialize(&mut self, root: &Path, capabilities: Value) -> Value {
        let folder = json!({ "uri": uri(root), "name": "sample" });
        let params = json!({
            "processId": std::process::id(), "rootUri": uri(root), "workspaceFolders": [folder],
            "capabilities": capabilities,
        });
        let result = self.request("initialize", params);
        self.notify("initialized", json!({}));
        result
    }

    /// Opens a file with this text, whatever the disk says.
    pub fn open(&mut self, path: &Path, text: &str) {
        self.documents.insert(uri(path), (1, text.to_owned()));
        let language = path.extension().unwrap().to_str().unwrap();
        let document = json!({ "uri": uri(path), "languageId": language, "version": 1, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    /// Replaces the one place where `old` stands, by an incremental change.
    pub fn edit(&mut self, path: &Path, old: &str, new: &str) {
        let uri = uri(path);
        let (version, text) = self.documents.get_mut(&uri).unwrap();
        let at = text.find(old).expect("the text to change is there");
        let range = json!({ "start": position(text, at), "end": position(text, at + old.len()) });
        text.replace_range(at..at + old.len(), new);
        *version += 1;
        let document = json!({ "uri": uri, "version": *version });
        let params = json!({ "textDocument": document, "contentChanges": [{ "range": range, "text": new }] });
        self.notify("textDocument/didChange", params);
    }

    /// The text of an open document.
    pub fn text(&self, path: &Path) -> &str {
        &self.documents[&uri(path)].1
    }

    /// The code actions at the place where `text` stands.
    pub fn actions(&mut self, path: &Path, text: &str, diagnostics: Value) -> Vec<Value> {
        let at = self.text(path).find(text).expect("the place is there");
        let position = position(self.text(path), at);
        let range = json!({ "start": position, "end": position });
        let context = json!({ "diagnostics": diagnostics });
        let params = json!({ "textDocument": { "uri": uri(path) }, "range": range, "context": context });
        self.request("textDocument/codeAction", params).as_array().cloned().unwrap_or_default()
    }

    /// Runs a command and answers with its job's number.
    pub fn command(&mut self, command: &str, arguments: Value) -> Value {
        self.request("workspace/executeCommand", json!({ "command": command, "arguments": [arguments] }))
    }

    /// Waits until `job` has ended; the parameters of `tadpole/finished`.
    pub fn finished(&mut self, job: &Value) -> Value {
        self.wait(|it| it["method"] == "tadpole/finished" && it["params"]["job"] == job["job"])["params"]
            .clone()
    }

    /// Sends a request and waits for its result.
    ///
    /// # Panics
    /// If the server answers with an error.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a request and waits for the whole answer.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|it| it["id"] == id && it.get("method").is_none())
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Waits for a message, and answers what the server asks meanwhile.
    ///
    /// # Panics
    /// After four minutes, or when the server has ended.
    pub fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let started = Instant::now();
        loop {
            if let Some(at) = self.inbox.iter().position(&wanted) {
                return self.inbox.remove(at);
            }
            let left = PATIENCE.saturating_sub(started.elapsed());
            let message = self.messages.recv_timeout(left);
            let message =
                message.unwrap_or_else(|_| panic!("the message did not come; got {:#?}", self.inbox));
            if message.get("method").is_some() && message.get("id").is_some() {
                let result = self.answer(&message);
                self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
            self.inbox.push(message);
        }
    }

    fn answer(&mut self, message: &Value) -> Value {
        let params = &message["params"];
        match message["method"].as_str().unwrap() {
            "workspace/applyEdit" => json!({ "applied": self.apply(&params["edit"]) }),
            "window/showMessageRequest" => {
                let offered: BTreeSet<&str> = params["actions"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(|it| it["title"].as_str())
                    .collect();
                let chosen = self.answers.iter().find(|it| offered.contains(it.as_str()));
                chosen.map_or(Value::Null, |title| json!({ "title": title }))
            }
            "workspace/configuration" => json!([Value::Null]),
            _ => Value::Null,
        }
    }

    /// Applies a versioned edit as the protocol says; false where a version is old.
    fn apply(&mut self, edit: &Value) -> bool {
        let changes = edit["documentChanges"].as_array().unwrap();
        let current = |it: &Value| {
            let open = self.documents.get(it["textDocument"]["uri"].as_str().unwrap());
            open.is_none_or(|(version, _)| it["textDocument"]["version"] == *version)
        };
        if !changes.iter().all(current) {
            return false;
        }
        for change in changes {
            let uri = change["textDocument"]["uri"].as_str().unwrap();
            let Some((version, text)) = self.documents.get_mut(uri) else { continue };
            let mut edits = change["edits"].as_array().unwrap().clone();
            edits.sort_by_key(|it| std::cmp::Reverse(offset(text, &it["range"]["start"])));
            for edit in edits {
                let range = offset(text, &edit["range"]["start"])..offset(text, &edit["range"]["end"]);
                text.replace_range(range, edit["newText"].as_str().unwrap());
            }
            *version += 1;
        }
        true
    }

    fn send(&mut self, message: Value) {
        let body = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        self.input.flush().unwrap();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A test that failed may leave it running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

/// The position of a byte offset: columns are UTF-16 code units.
pub fn position(text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.matches('\n').count();
    json!({ "line": line, "character": before[line_start..].encode_utf16().count() })
}

fn offset(text: &str, position: &Value) -> usize {
    let line = position["line"].as_u64().unwrap() as usize;
    let start =
        if line == 0 { 0 } else { text.match_indices('\n').nth(line - 1).map_or(text.len(), |it| it.0 + 1) };
    let mut units = position["character"].as_u64().unwrap() as usize;
    for (at, character) in text[start..].char_indices() {
        if units == 0 || character == '\n' {
            return start + at;
        }
        units -= character.len_utf16();
    }
    text.len()
}
