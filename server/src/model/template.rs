//! Chat templates: the model's own Jinja source, rendered as `transformers` renders it.

use minijinja::value::{Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use serde_json::json;

use super::{Message, ModelError, Role, Tool};

/// A compiled chat template.
#[derive(Debug)]
pub struct Template {
    environment: Environment<'static>,
    bos: String,
    eos: String,
}

impl Template {
    /// Compiles the template of a model with its special tokens.
    ///
    /// # Errors
    /// [`ModelError::Unusable`] with the template's fault.
    pub fn new(source: &str, bos: &str, eos: &str) -> Result<Self, ModelError> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", |message: String| -> Result<(), Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", |format: String| date(&format));
        environment.add_template_owned("chat", source.to_owned()).map_err(|error| {
            ModelError::Unusable(format!("the model's chat template cannot be read: {error}"))
        })?;
        Ok(Self { environment, bos: bos.to_owned(), eos: eos.to_owned() })
    }

    /// The prompt for `messages`, up to where the assistant's answer starts, and `prefill` after that.
    ///
    /// # Errors
    /// [`ModelError::Request`] if the template refuses the messages.
    pub fn render(
        &self,
        messages: &[Message],
        tools: &[Tool],
        thinking: bool,
        prefill: &str,
    ) -> Result<String, ModelError> {
        let refused = |error: Error| {
            ModelError::Request(format!("the model's chat template refuses this conversation: {error:#}"))
        };
        let tools: Vec<_> =
            tools.iter().map(|tool| json!({ "type": "function", "function": tool })).collect();
        let messages: Vec<_> = messages.iter().map(message).collect();
        let context = minijinja::context! {
            messages => messages,
            tools => if tools.is_empty() { Value::from(()) } else { Value::from_serialize(&tools) },
            add_generation_prompt => true,
            enable_thinking => thinking,
            bos_token => self.bos,
            eos_token => self.eos,
        };
        let template = self.environment.get_template("chat").map_err(refused)?;
        Ok(template.render(context).map_err(refused)? + prefill)
    }
}

fn message(message: &Message) -> serde_json::Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut value = json!({ "role": role, "content": message.content });
    if let Some(reasoning) = &message.reasoning_content {
        value["reasoning_content"] = json!(reasoning);
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({
                "type": "function",
                "id": call.id,
                "function": { "name": call.name, "arguments": call.arguments },
            })
        });
        value["tool_calls"] = calls.collect();
    }
    if let Some(id) = &message.tool_call_id {
        value["tool_call_id"] = json!(id);
    }
    value
}

/// Python's `json.dumps(value, ensure_ascii=False)`: a space after `,` and `:`, order kept.
fn to_json(value: &Value, options: minijinja::value::Kwargs) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let mut text = String::new();
    write_json(value, indent, 0, &mut text)?;
    Ok(Value::from_safe_string(text))
}

fn write_json(value: &Value, indent: Option<usize>, depth: usize, text: &mut String) -> Result<(), Error> {
    let newline = |text: &mut String, depth: usize| {
        if let Some(indent) = indent {
            text.push('\n');
            text.push_str(&" ".repeat(indent * depth));
        }
    };
    let comma = if indent.is_some() { "," } else { ", " };
    match value.kind() {
        ValueKind::Map => {
            text.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                text.push_str(if index > 0 { comma } else { "" });
                newline(text, depth + 1);
                scalar(&Value::from(key.to_string()), text)?;
                text.push_str(": ");
                write_json(&value.get_item(&key)?, indent, depth + 1, text)?;
            }
            if value.len() != Some(0) {
                newline(text, depth);
            }
            text.push('}');
        }
        ValueKind::Seq | ValueKind::Iterable => {
            text.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                text.push_str(if index > 0 { comma } else { "" });
                newline(text, depth + 1);
                write_json(&item, indent, depth + 1, text)?;
            }
            if value.len() != Some(0) {
                newline(text, depth);
            }
            text.push(']');
        }
        _ => scalar(value, text)?,
    }
    Ok(())
}

fn scalar(value: &Value, text: &mut String) -> Result<(), Error> {
    let written = serde_json::to_string(value)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    text.push_str(&written);
    Ok(())
}

/// Today by the few directives that templates use (`%d %b %Y` and the like).
fn date(format: &str) -> String {
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64);
    // Days to a civil date: https://howardhinnant.github.io/date_algorithms.html#civil_from_days
    let days = seconds.div_euclid(86_400) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let name = MONTHS[usize::try_from(month - 1).unwrap_or(0).min(11)];
    format
        .replace("%Y", &year.to_string())
        .replace("%m", &format!("{month:02}"))
        .replace("%d", &format!("{day:02}"))
        .replace("%B", name)
        .replace("%b", &name[..3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_written_as_python_writes_it() -> Result<(), ModelError> {
        let source = "{{ messages[0].content }}|{{ tools | tojson }}";
        let tool = Tool {
            name: "größe".into(),
            description: "a \"b\" <c>".into(),
            parameters: json!({ "type": "object", "properties": { "z": { "type": "string" }, "a": {} }, "required": [] }),
        };
        let text =
            Template::new(source, "", "")?.render(&[Message::new(Role::User, "hi")], &[tool], false, "!")?;
        assert_eq!(
            text,
            "hi|[{\"type\": \"function\", \"function\": {\"name\": \"größe\", \"description\": \"a \\\"b\\\" <c>\", \
             \"parameters\": {\"type\": \"object\", \"properties\": {\"z\": {\"type\": \"string\"}, \"a\": {}}, \
             \"required\": []}}}]!"
        );
        Ok(())
    }

    #[test]
    fn a_refusal_of_the_template_is_told() -> Result<(), ModelError> {
        let template = Template::new("{{ raise_exception('roles must alternate') }}", "", "")?;
        let error =
            template.render(&[], &[], false, "").map(|_| String::new()).unwrap_or_else(|it| it.to_string());
        assert!(error.contains("roles must alternate"), "{error}");
        Ok(())
    }
}
