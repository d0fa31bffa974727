//! What a file imports.

use super::{Language, field, text, visit};

/// The module paths or names that a file imports, as written.
pub fn imports(language: Language, source: &str) -> Vec<String> {
    let Some(tree) = language.parse(source) else { return Vec::new() };
    let mut found = Vec::new();
    visit(tree.root_node(), |node| {
        match (language, node.kind()) {
            (Language::Python, "import_from_statement") => {
                let module = field(node, "module_name", source).unwrap_or_default();
                found.push(module.to_owned());
                let mut cursor = node.walk();
                for name in node.children_by_field_name("name", &mut cursor) {
                    let name = field(name, "name", source).unwrap_or_else(|| text(name, source));
                    found.push(format!("{module}.{name}"));
                }
            }
            (Language::Python, "import_statement") => {
                let mut cursor = node.walk();
                for name in node.children_by_field_name("name", &mut cursor) {
                    found.push(field(name, "name", source).unwrap_or_else(|| text(name, source)).to_owned());
                }
            }
            (Language::Rust, "use_declaration") => {
                found.extend(field(node, "argument", source).map(str::to_owned))
            }
            (Language::Go, "import_spec") => found.extend(field(node, "path", source).map(unquoted)),
            (_, "import_statement" | "export_statement") => {
                found.extend(field(node, "source", source).map(unquoted))
            }
            (_, "call_expression") => {
                let required = field(node, "function", source) == Some("require");
                let argument = node.child_by_field_name("arguments").and_then(|it| it.named_child(0));
                found.extend(argument.filter(|_| required).map(|it| unquoted(text(it, source))));
            }
            _ => {}
        }
        true
    });
    found
}

fn unquoted(text: &str) -> String {
    text.trim_matches(['"', '\'', '`']).to_owned()
}
