use super::*;

fn names(language: Language, source: &str) -> Vec<String> {
    functions(language, source).into_iter().map(|it| it.qualified_name).collect()
}

fn test_names(file: &str, source: &str) -> Vec<String> {
    let path = Path::new(file);
    let found = Language::of(path).map(|it| tests(it, path, source)).unwrap_or_default();
    found.into_iter().map(|it| it.name).collect()
}

#[test]
fn python_functions_have_their_classes_and_decorators() {
    let source = "class A:\n    @property\n    def x(self):\n        return self.f(g(1))\n\n    async def f(self, y):\n        def inner(): pass\n";
    assert_eq!(names(Language::Python, source), ["A.x", "A.f", "A.f.inner"]);
    let x = &functions(Language::Python, source)[0];
    assert!(source[x.range.clone()].starts_with("@property\n"));
    assert_eq!((x.lines, x.calls.clone()), ((2, 4), vec!["f".to_owned(), "g".to_owned()]));
}

#[test]
fn rust_methods_have_their_types_attributes_and_documentation() {
    let source = "impl<T> Stack<T> {\n    /// Adds.\n    #[inline]\n    pub fn push(&mut self, x: T) { self.items.push(x); helper::<T>(); a::b() }\n}\nmod m { fn g() {} }\n";
    assert_eq!(names(Language::Rust, source), ["Stack::push", "m::g"]);
    let push = &functions(Language::Rust, source)[0];
    assert!(source[push.range.clone()].starts_with("/// Adds."));
    assert_eq!(push.calls, ["push", "helper", "b"]);
    assert_eq!(push.lines, (2, 4));
}

#[test]
fn javascript_functions_of_every_form() {
    let source = "export function a() { b(); }\nexport const c = (x) => x.d();\nclass E { f() { new G(); } h = () => 1; }\n";
    assert_eq!(names(Language::TypeScript, source), ["a", "c", "E.f", "E.h"]);
    assert_eq!(names(Language::JavaScript, source), ["a", "c", "E.f", "E.h"]);
    assert!(source[functions(Language::TypeScript, source)[1].range.clone()].starts_with("export const c"));
}

#[test]
fn go_methods_have_their_receivers() {
    let source = "package p\nfunc (s *Stack[T]) Push(x T) { s.items = append(s.items, x) }\nfunc Free() { fmt.Println() }\n";
    assert_eq!(names(Language::Go, source), ["Stack.Push", "Free"]);
    assert_eq!(functions(Language::Go, source)[1].calls, ["Println"]);
}

#[test]
fn tests_are_found_by_their_form() {
    let python = "def test_a(): pass\nclass TestX:\n    def test_b(self): pass\n    def helper(self): pass\nclass Y:\n    def test_c(self): pass\nclass Z(unittest.TestCase):\n    def test_d(self): pass\ndef f():\n    def test_e(): pass\n";
    assert_eq!(test_names("tests/test_m.py", python), ["test_a", "TestX > test_b", "Z > test_d"]);
    assert_eq!(test_names("src/m.py", python), Vec::<String>::new());
    let rust = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() {}\n    #[tokio::test(flavor = \"x\")]\n    async fn b() {}\n    fn c() {}\n}\n";
    assert_eq!(test_names("src/lib.rs", rust), ["tests > a", "tests > b"]);
    let go = "package p\nfunc TestA(t *testing.T) {}\nfunc Testing(t *testing.T) {}\nfunc TestMain(m *testing.M) {}\n";
    assert_eq!(test_names("p_test.go", go), ["TestA"]);
    let js = "describe('s', () => { it.only(\"a\", () => {}); test.each([1])('b %i', () => {}); });\ntest(`c`, () => {});\n";
    assert_eq!(test_names("x.test.js", js), ["s > a", "s > b %i", "c"]);
    assert_eq!(test_names("x.test.ts", js), ["s > a", "s > b %i", "c"]);
}

#[test]
fn imports_are_named_as_written() {
    assert_eq!(imports(Language::Python, "import a.b\nfrom .c import d as e\n"), ["a.b", ".c", ".c.d"]);
    assert_eq!(imports(Language::Rust, "use crate::a::{b, c};"), ["crate::a::{b, c}"]);
    assert_eq!(
        imports(Language::TypeScript, "import x from './y';\nconst z = require(\"w\");"),
        ["./y", "w"]
    );
    assert_eq!(imports(Language::Go, "package p\nimport (\n\t\"fmt\"\n\tq \"a/b\"\n)\n"), ["fmt", "a/b"]);
}

#[test]
fn errors_are_counted_and_layout_is_not_code() {
    assert_ne!(errors(Language::Python, "def f(:\n  pass\n"), 0);
    assert_eq!(errors(Language::Python, "def f():\n  pass\n"), 0);
    let a = normalized(Language::Python, "def f(x):\n    # why\n    return x+1\n");
    assert_eq!(a, normalized(Language::Python, "def f( x ):\n  return x + 1"));
    assert_ne!(a, normalized(Language::Python, "def f(x):\n    return x + 2\n"));
    let inside = normalized(Language::Python, "if a:\n    b()\n    c()\n");
    assert_ne!(inside, normalized(Language::Python, "if a:\n    b()\nc()\n"));
}

#[test]
fn nothing_panics_on_damaged_or_deep_sources() {
    let sources = [
        (Language::Python, "class A:\n  def f(self): return [g(x) for x in 'aé']\n"),
        (Language::Rust, "impl A { #[test] fn f() { g::<B>(); } }"),
        (Language::TypeScript, "describe('é', () => { it(`b`, () => { new C() }) })"),
        (Language::Go, "package p\nfunc (a *A) F() { b.C() }"),
    ];
    for (language, source) in sources {
        for at in (0..source.len()).filter(|&at| source.is_char_boundary(at)) {
            for damaged in [source[..at].to_owned(), format!("{}({}", &source[..at], &source[at..])] {
                functions(language, &damaged);
                tests(language, Path::new("test_x_test.go"), &damaged);
                imports(language, &damaged);
                normalized(language, &damaged);
                errors(language, &damaged);
            }
        }
        let deep = "(".repeat(20_000);
        functions(language, &deep);
        assert_ne!(errors(language, &deep), 0);
    }
}
