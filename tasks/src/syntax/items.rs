//! Tests of a file, found by their form.

use std::path::Path;

use tree_sitter::Node;

use super::{Language, TestItem, field, text, visit};

/// All tests of a file.
pub fn tests(language: Language, path: &Path, source: &str) -> Vec<TestItem> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let relevant = match language {
        Language::Python => {
            name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py")
        }
        Language::Go => name.ends_with("_test.go"),
        Language::Rust => source.contains("test"),
        Language::JavaScript | Language::TypeScript | Language::Tsx => {
            ["describe", "test", "it"].iter().any(|word| source.contains(word))
        }
    };
    let Some(tree) = language.parse(source).filter(|_| relevant) else { return Vec::new() };
    let mut found = Vec::new();
    visit(tree.root_node(), |node| {
        found.extend(match language {
            Language::Python => python(node, source),
            Language::Rust => rust(node, source),
            Language::Go => go(node, source),
            Language::JavaScript | Language::TypeScript | Language::Tsx => javascript(node, source),
        });
        true
    });
    found
}

fn item(path: Vec<String>, name: Node<'_>, whole: Node<'_>) -> TestItem {
    TestItem { name: path.join(" > "), path, name_range: name.byte_range(), range: whole.byte_range() }
}

/// Names of the nodes around `node` that `scope` gives a name to, outermost first.
fn around<'a>(node: Node<'_>, scope: impl Fn(Node<'_>) -> Option<&'a str>) -> Vec<String> {
    let mut names = Vec::new();
    let mut parent = node.parent();
    while let Some(outer) = parent {
        names.extend(scope(outer).map(str::to_owned));
        parent = outer.parent();
    }
    names.reverse();
    names
}

fn python(node: Node<'_>, source: &str) -> Option<TestItem> {
    let name = node.child_by_field_name("name").filter(|_| node.kind() == "function_definition")?;
    if !text(name, source).starts_with("test") {
        return None;
    }
    let nested = |outer: Node<'_>| (outer.kind() == "function_definition").then_some("");
    if !around(node, nested).is_empty() {
        return None;
    }
    let class = |outer: Node<'_>| {
        let name = field(outer, "name", source).filter(|_| outer.kind() == "class_definition")?;
        let bases = field(outer, "superclasses", source).unwrap_or_default();
        (name.starts_with("Test") || bases.contains("TestCase")).then_some(name)
    };
    let classes =
        |outer: Node<'_>| field(outer, "name", source).filter(|_| outer.kind() == "class_definition");
    let mut path = around(node, class);
    if path.len() != around(node, classes).len() {
        return None;
    }
    path.push(text(name, source).to_owned());
    let whole = node.parent().filter(|it| it.kind() == "decorated_definition").unwrap_or(node);
    Some(item(path, name, whole))
}

fn rust(node: Node<'_>, source: &str) -> Option<TestItem> {
    let name = node.child_by_field_name("name").filter(|_| node.kind() == "function_item")?;
    let mut previous = node.prev_sibling();
    let mut marked = false;
    while let Some(sibling) = previous {
        match sibling.kind() {
            "attribute_item" => {
                let attribute = text(sibling, source).trim_matches(['#', '[', ']']);
                let path = attribute.split(['(', '=']).next().unwrap_or_default().trim();
                let last = path.rsplit("::").next().unwrap_or_default();
                marked |= last == "test" || last == "rstest" || last == "test_case";
            }
            "line_comment" | "block_comment" => {}
            _ => break,
        }
        previous = sibling.prev_sibling();
    }
    if !marked {
        return None;
    }
    let mut path = around(node, |outer| field(outer, "name", source).filter(|_| outer.kind() == "mod_item"));
    path.push(text(name, source).to_owned());
    Some(item(path, name, node))
}

fn go(node: Node<'_>, source: &str) -> Option<TestItem> {
    let name = node.child_by_field_name("name").filter(|_| node.kind() == "function_declaration")?;
    let rest = text(name, source).strip_prefix("Test")?;
    let takes_t = field(node, "parameters", source).is_some_and(|it| it.contains("testing.T"));
    let named = rest.chars().next().is_none_or(|first| !first.is_lowercase());
    (takes_t && named).then(|| item(vec![text(name, source).to_owned()], name, node))
}

fn javascript(node: Node<'_>, source: &str) -> Option<TestItem> {
    let (kind, title) = block(node, source)?;
    if kind != Block::Test {
        return None;
    }
    let suite = |outer: Node<'_>| {
        block(outer, source).filter(|it| it.0 == Block::Suite).map(|it| unquoted(text(it.1, source)))
    };
    let mut path = around(node, suite);
    path.push(unquoted(text(title, source)).to_owned());
    Some(item(path, title, node))
}

#[derive(PartialEq, Eq)]
enum Block {
    Suite,
    Test,
}

/// `describe("…", …)`, `test("…", …)`, `it.only("…", …)`, `test.each(…)("…", …)` with their titles.
fn block<'tree>(node: Node<'tree>, source: &str) -> Option<(Block, Node<'tree>)> {
    if node.kind() != "call_expression" {
        return None;
    }
    let mut function = node.child_by_field_name("function")?;
    for _ in 0..3 {
        function = match function.kind() {
            "member_expression" => function.child_by_field_name("object")?,
            "call_expression" => function.child_by_field_name("function")?,
            _ => break,
        };
    }
    let kind = match text(function, source) {
        "describe" | "suite" | "context" => Block::Suite,
        "test" | "it" | "specify" => Block::Test,
        _ => return None,
    };
    let title = node.child_by_field_name("arguments")?.named_child(0)?;
    matches!(title.kind(), "string" | "template_string").then_some((kind, title))
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\'', '`'])
}
