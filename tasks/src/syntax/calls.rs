//! What a function calls, by name.

use tree_sitter::Node;

use super::{Language, field, text, visit};

/// Names called within `node`, each once, in order.
pub(super) fn calls(language: Language, node: Node<'_>, source: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    visit(node, |inner| {
        if let Some(name) = called(language, inner, source)
            && !found.iter().any(|it| it == name)
        {
            found.push(name.to_owned());
        }
        true
    });
    found
}

fn called<'a>(language: Language, node: Node<'_>, source: &'a str) -> Option<&'a str> {
    let target = match (language, node.kind()) {
        (Language::Python, "call") | (_, "call_expression") => node.child_by_field_name("function")?,
        (_, "new_expression") => node.child_by_field_name("constructor")?,
        // What stands inside a macro (`assert_eq!(area(s), 4)`) is not parsed: a name before parentheses is a call.
        (Language::Rust, "identifier") => {
            let arguments = node.next_sibling().filter(|it| it.kind() == "token_tree")?;
            let inside = node.parent().is_some_and(|it| it.kind() == "token_tree");
            return (inside && text(arguments, source).starts_with('(')).then(|| text(node, source));
        }
        _ => return None,
    };
    match target.kind() {
        "identifier" | "type_identifier" => Some(text(target, source)),
        "attribute" => field(target, "attribute", source),
        "member_expression" => field(target, "property", source),
        "field_expression" | "selector_expression" => field(target, "field", source),
        "scoped_identifier" => field(target, "name", source),
        "generic_function" => {
            let inner = target.child_by_field_name("function")?;
            field(inner, "name", source).or_else(|| Some(text(inner, source)))
        }
        _ => None,
    }
}

/// Names called in a piece of source.
pub fn called_names(language: Language, source: &str) -> Vec<String> {
    language.parse(source).map(|tree| calls(language, tree.root_node(), source)).unwrap_or_default()
}
