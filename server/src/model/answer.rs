//! From what a model wrote to text, thinking and tool calls, in the forms that the model families emit:
//! `<think>` blocks, Hermes JSON (`<tool_call>{"name": …}</tool_call>`) and Qwen3-Coder's XML
//! (`<tool_call><function=name><parameter=key>…`).

use serde_json::{Map, Value};

use super::{Tool, ToolCall};

/// What a model wrote, taken apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Text without thinking and calls.
    pub text: String,
    /// Thinking.
    pub reasoning: String,
    /// Calls, in order.
    pub tool_calls: Vec<ToolCall>,
}

/// Takes `raw` apart, which followed `prefill`. `thinking_open` says that the prompt ended inside of `<think>`. Calls are
/// looked for only if `tools` were offered; arguments that cannot be read count as none (as in the harness that FrogNano was trained in).
pub fn parse(raw: &str, prefill: &str, tools: &[Tool], thinking_open: bool) -> Answer {
    let (reasoning, rest) = thinking(raw, thinking_open);
    let mut answer = Answer { text: String::new(), reasoning, tool_calls: Vec::new() };
    if tools.is_empty() {
        answer.text = format!("{prefill}{rest}");
        return answer;
    }
    let mut rest = rest;
    let mut text = prefill.to_owned();
    while let Some((before, after)) = rest.split_once("<tool_call>") {
        text.push_str(before);
        let (body, after) = after.split_once("</tool_call>").unwrap_or((after, ""));
        answer.tool_calls.push(call(body.trim(), tools, answer.tool_calls.len()));
        rest = after;
    }
    text.push_str(rest);
    if answer.tool_calls.is_empty() {
        // Small coder models often leave the tags out.
        if let Some(found) = bare_call(&text, tools) {
            answer.tool_calls.push(found);
            text.clear();
        }
    }
    answer.text = text.trim().to_owned();
    answer
}

fn thinking(raw: &str, open: bool) -> (String, &str) {
    let body = match raw.trim_start().strip_prefix("<think>") {
        Some(body) => body,
        None if open => raw,
        None => return (String::new(), raw),
    };
    match body.split_once("</think>") {
        Some((reasoning, rest)) => (reasoning.trim().to_owned(), rest.trim_start_matches('\n')),
        None => (body.trim().to_owned(), ""),
    }
}

fn call(body: &str, tools: &[Tool], index: usize) -> ToolCall {
    let id = format!("call_{index}");
    if let Some(function) = body.strip_prefix("<function=") {
        return xml_call(function, tools, id);
    }
    let parsed: Option<Value> = serde_json::from_str(body).ok();
    let name = match &parsed {
        Some(value) => value.get("name").and_then(Value::as_str).map(str::to_owned),
        None => quoted_after(body, "\"name\""),
    };
    let arguments = match parsed.as_ref().and_then(|value| value.get("arguments")) {
        Some(Value::Object(arguments)) => Value::Object(arguments.clone()),
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_else(|_| no_arguments()),
        _ => no_arguments(),
    };
    ToolCall { id, name: name.unwrap_or_default(), arguments }
}

fn no_arguments() -> Value {
    Value::Object(Map::new())
}

fn quoted_after(body: &str, key: &str) -> Option<String> {
    let rest = body.split_once(key)?.1.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn xml_call(function: &str, tools: &[Tool], id: String) -> ToolCall {
    let Some((name, mut rest)) = function.split_once('>') else {
        return ToolCall { id, name: function.trim().to_owned(), arguments: no_arguments() };
    };
    let name = name.trim().to_owned();
    let schema = tools.iter().find(|tool| tool.name == name).map(|tool| &tool.parameters["properties"]);
    let mut arguments = Map::new();
    while let Some((_, after)) = rest.split_once("<parameter=") {
        let Some((key, after)) = after.split_once('>') else {
            return ToolCall { id, name, arguments: no_arguments() };
        };
        let end = [after.find("</parameter>"), after.find("<parameter="), after.find("</function>")];
        let end = end.into_iter().flatten().min().unwrap_or(after.len());
        let value = after[..end].strip_prefix('\n').unwrap_or(&after[..end]);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let kind = schema.and_then(|it| it[key.trim()]["type"].as_str());
        arguments.insert(key.trim().to_owned(), typed(value, kind));
        rest = &after[end..];
    }
    ToolCall { id, name, arguments: Value::Object(arguments) }
}

/// A value of the schema's type where the text can be read as one.
fn typed(text: &str, kind: Option<&str>) -> Value {
    match kind {
        Some("string") | None => Value::String(text.to_owned()),
        Some(_) => serde_json::from_str(text.trim())
            .or_else(|_| serde_json::from_str(&text.trim().to_lowercase()))
            .unwrap_or_else(|_| Value::String(text.to_owned())),
    }
}

/// A whole answer that is one JSON object naming an offered tool, plain or in a code block.
fn bare_call(text: &str, tools: &[Tool]) -> Option<ToolCall> {
    let body = text.trim();
    let body = match body.strip_prefix("```") {
        Some(block) => block.split_once('\n')?.1.trim_end().strip_suffix("```")?.trim(),
        None => body,
    };
    let value: Value = serde_json::from_str(body).ok()?;
    let name = value.get("name")?.as_str()?;
    tools.iter().any(|tool| tool.name == name).then(|| call(body, tools, 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Vec<Tool> {
        let parameters = json!({ "type": "object", "properties": {
            "command": { "type": "string" }, "line": { "type": "integer" } } });
        vec![Tool { name: "bash".into(), description: String::new(), parameters }]
    }

    #[test]
    fn several_calls_and_thinking_come_apart() {
        let raw = "<think>\nhm\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>\n\
                   <tool_call>\n<function=bash>\n<parameter=command>\ncat a\nb\n</parameter>\n<parameter=line>\n3\n</parameter>\n</function>\n</tool_call>";
        let answer = parse(raw, "", &tools(), false);
        assert_eq!((answer.reasoning.as_str(), answer.text.as_str()), ("hm", "Let me look."));
        assert_eq!(answer.tool_calls[0].arguments, json!({ "command": "ls" }));
        assert_eq!(answer.tool_calls[1].arguments, json!({ "command": "cat a\nb", "line": 3 }));
    }

    #[test]
    fn a_broken_call_keeps_its_name_and_has_no_arguments() {
        let answer = parse(
            "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"l</tool_call>",
            "",
            &tools(),
            false,
        );
        assert_eq!(
            (answer.tool_calls[0].name.as_str(), &answer.tool_calls[0].arguments),
            ("bash", &json!({}))
        );
    }

    #[test]
    fn an_object_without_tags_is_a_call_only_if_it_names_a_tool() {
        let named = "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```";
        assert_eq!(parse(named, "", &tools(), false).tool_calls.len(), 1);
        assert_eq!(parse("{\"name\": \"other\"}", "", &tools(), false).tool_calls.len(), 0);
        assert_eq!(parse(named, "", &[], false).text, named);
    }

    #[test]
    fn no_cut_of_an_answer_panics() {
        let raw = "<think>ä</think><tool_call><function=bash><parameter=command>é</parameter></function></tool_call>{\"name\"";
        for (end, _) in raw.char_indices() {
            for tools in [tools(), Vec::new()] {
                parse(&raw[..end], "p", &tools, end % 2 == 0);
            }
        }
    }
}
