//! The templates of the registry's models, rendered by us and by Jinja itself as `transformers` sets it up.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failing step fails the test")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use server::home::Home;
use server::model::gguf::Gguf;
use server::model::template::Template;
use server::model::{Message, Role, Tool};

/// As in `transformers.utils.chat_template_utils`.
const JINJA: &str = r#"
import json, sys
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
environment.filters["tojson"] = tojson
given = json.load(sys.stdin)
sys.stdout.write(environment.from_string(given.pop("template")).render(**given))
"#;

const MODELS: [&str; 3] = ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"];

fn python() -> PathBuf {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/python/bin/python");
    assert!(python.exists(), "{} is missing; run `make tools` first", python.display());
    python
}

fn jinja(given: &serde_json::Value) -> String {
    let mut child = Command::new(python())
        .args(["-c", JINJA])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python starts");
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn conversations() -> Vec<Vec<Message>> {
    let user = |text: &str| Message::new(Role::User, text);
    let system = Message::new(Role::System, "Be brief.\nUse <tags> & \"quotes\".");
    let call: Message = serde_json::from_value(json!({
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            { "id": "1", "name": "grep", "arguments": { "pattern": "größe \"x\" <y>", "context": 3 } },
            { "id": "2", "name": "bash", "arguments": { "command": "ls\n" } },
        ],
    }))
    .unwrap();
    let answer = |id: &str, text: &str| Message {
        tool_call_id: Some(id.to_owned()),
        ..Message::new(Role::Tool, text)
    };
    vec![
        vec![user("Hi \u{1F600}")],
        vec![system.clone(), user("Hi"), Message::new(Role::Assistant, "Hello!"), user("  Spaces stay \n")],
        vec![system, user("Find it"), call, answer("1", "a.py:1: größe"), answer("2", "a.py"), user("Go on")],
    ]
}

#[test]
fn prompts_are_those_of_the_models_own_templates() {
    let home = Home::open().unwrap();
    let tool = Tool {
        name: "grep".into(),
        description: "Finds 'text' <in> files.".into(),
        parameters: json!({ "type": "object", "properties": { "pattern": { "type": "string" } }, "required": ["pattern"] }),
    };
    for name in MODELS {
        let path = home.models().join(format!("{name}.gguf"));
        assert!(path.is_file(), "{name} is missing; run `make models` first");
        let gguf = Gguf::read(&path).unwrap();
        let source = gguf.text("tokenizer.chat_template").expect("the model has a template");
        let template = Template::new(source, "<s>", "</s>").unwrap();
        for messages in conversations() {
            for tools in [Vec::new(), vec![tool.clone()]] {
                let ours = template.render(&messages, &tools, false, "").unwrap();
                let functions: Vec<_> =
                    tools.iter().map(|it| json!({ "type": "function", "function": it })).collect();
                let plain: Vec<_> = messages.iter().map(plain).collect();
                let theirs = jinja(&json!({
                    "template": source,
                    "messages": plain,
                    "tools": if functions.is_empty() { json!(null) } else { json!(functions) },
                    "add_generation_prompt": true,
                    "enable_thinking": false,
                    "bos_token": "<s>",
                    "eos_token": "</s>",
                }));
                assert_eq!(ours, theirs, "{name}");
                assert!(ours.contains("Hi") || ours.contains("Find it"));
                assert!(ours.ends_with("assistant\n"), "{name}: {ours}");
            }
        }
    }
}

/// A message as `transformers` is given it.
fn plain(message: &Message) -> serde_json::Value {
    let mut value = json!({ "role": message.role, "content": message.content });
    let call = |it: &server::model::ToolCall| json!({ "type": "function", "id": it.id, "function": { "name": it.name, "arguments": it.arguments } });
    if !message.tool_calls.is_empty() {
        value["tool_calls"] = message.tool_calls.iter().map(call).collect();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = json!(id);
    }
    value
}
