//! Functions and methods of a file.

use tree_sitter::Node;

use super::{Function, Language, calls, field, text, visit};

/// All functions, outermost first, in order.
pub fn functions(language: Language, source: &str) -> Vec<Function> {
    let Some(tree) = language.parse(source) else { return Vec::new() };
    let mut found = Vec::new();
    visit(tree.root_node(), |node| {
        found.extend(function(language, node, source));
        true
    });
    found
}

fn function(language: Language, node: Node<'_>, source: &str) -> Option<Function> {
    let name = own_name(language, node, source)?;
    let whole = whole(language, node);
    let end = node.end_byte().max(whole.end_byte());
    let start = leading(language, whole, source);
    let mut scopes: Vec<String> = Vec::new();
    if let Some(receiver) = field(node, "receiver", source) {
        let kind = receiver.trim_matches(['(', ')']).rsplit([' ', '*']).next().unwrap_or_default();
        scopes.push(kind.split('[').next().unwrap_or_default().to_owned());
    }
    let mut parent = node.parent();
    while let Some(outer) = parent {
        scopes.extend(scope_name(language, outer, source));
        parent = outer.parent();
    }
    scopes.reverse();
    scopes.push(name.clone());
    let separator = if language == Language::Rust { "::" } else { "." };
    let first = 1 + source[..start].bytes().filter(|&byte| byte == b'\n').count();
    Some(Function {
        qualified_name: scopes.join(separator),
        name,
        range: start..end,
        lines: (first as u32, 1 + node.end_position().row as u32),
        calls: calls::calls(language, node, source),
    })
}

fn own_name(language: Language, node: Node<'_>, source: &str) -> Option<String> {
    let named = || field(node, "name", source).map(str::to_owned);
    match (language, node.kind()) {
        (Language::Python, "function_definition") | (Language::Rust, "function_item") => named(),
        (Language::Go, "function_declaration" | "method_declaration") => named(),
        (
            Language::JavaScript | Language::TypeScript | Language::Tsx,
            "function_declaration" | "generator_function_declaration" | "method_definition",
        ) => named(),
        (
            Language::JavaScript | Language::TypeScript | Language::Tsx,
            "variable_declarator" | "public_field_definition" | "field_definition",
        ) => {
            let value = node.child_by_field_name("value")?;
            let is_function =
                matches!(value.kind(), "arrow_function" | "function_expression" | "generator_function");
            is_function
                .then(|| named().or_else(|| field(node, "property", source).map(str::to_owned)))
                .flatten()
        }
        _ => None,
    }
}

/// The node with its decorators, `export` and `const`.
fn whole(language: Language, node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while let Some(parent) = node.parent() {
        let belongs = match (language, parent.kind()) {
            (Language::Python, "decorated_definition") => true,
            (_, "lexical_declaration" | "variable_declaration") => parent.named_child_count() == 1,
            (_, "export_statement") => true,
            _ => false,
        };
        if !belongs {
            break;
        }
        node = parent;
    }
    node
}

/// Where attributes and documentation before a node begin.
fn leading(language: Language, node: Node<'_>, source: &str) -> usize {
    let mut start = node.start_byte();
    if language != Language::Rust {
        return start;
    }
    let mut previous = node.prev_sibling();
    while let Some(sibling) = previous {
        let comment = text(sibling, source);
        let documents =
            sibling.kind() == "line_comment" && comment.starts_with("///") && !comment.starts_with("////");
        if sibling.kind() != "attribute_item" && !documents {
            break;
        }
        start = sibling.start_byte();
        previous = sibling.prev_sibling();
    }
    start
}

/// What a node adds to the qualified names of functions within it.
fn scope_name(language: Language, node: Node<'_>, source: &str) -> Option<String> {
    let name = match (language, node.kind()) {
        (Language::Python, "class_definition" | "function_definition") => field(node, "name", source),
        (Language::Rust, "impl_item") => field(node, "type", source),
        (Language::Rust, "trait_item" | "mod_item" | "function_item") => field(node, "name", source),
        (
            Language::JavaScript | Language::TypeScript | Language::Tsx,
            "class_declaration" | "class" | "function_declaration",
        ) => field(node, "name", source),
        _ => None,
    };
    // `Stack<T>` is `Stack` in every message.
    name.map(|name| name.split('<').next().unwrap_or_default().to_owned())
}
