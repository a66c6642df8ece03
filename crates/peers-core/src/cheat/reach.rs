//! Which lines of a test file are never run: what stands after a `return`, under `if false`, or
//! where no runner looks for a test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::idioms::{pattern, test_start};
use super::strip::{Language, Line};

/// For each line whether it is never run.
pub(super) fn unreached(language: Language, lines: &[Line]) -> Vec<bool> {
    let bare: Vec<&str> = lines.iter().map(|l| l.bare.as_str()).collect();
    match language {
        Language::Python => Blocks::python(&bare),
        Language::Ruby | Language::Elixir => Blocks::by_indentation(&bare),
        Language::Shell => vec![false; bare.len()],
        Language::Rust | Language::Script | Language::Go | Language::Braces | Language::C => {
            by_braces(language, &bare)
        }
    }
}

static NEVER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:if|while)\b[\s(]*(?:(?:False|false|0|None|nil|TYPE_CHECKING|typing\.TYPE_CHECKING)\b",
        r#"|not\s+True\b|!\s*true\b|__name__\s*==\s*["'][^"']*["'])[\s)]*(?:[:{]|then)?\s*$"#,
    ))
});

/// A statement that leaves the block that it stands in, whatever happens.
static LEAVES: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:return|break|continue|next)\b"));

static DEF: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:async\s+)?def\s+(\w+)"));

static CLASS: LazyLock<Regex> = LazyLock::new(|| pattern(r"^class\s+(\w+)\s*(?:\(([^)]*)\)?)?"));

static PREPROCESSOR_NEVER: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^#\s*if\s+(?:0|false|FALSE|NEVER)\s*$"));

/// Whether a statement leaves and is no condition of Ruby.
fn leaves(statement: &str, is_python: bool) -> bool {
    LEAVES.is_match(statement)
        && (is_python || ![" if ", " unless "].iter().any(|word| statement.contains(word)))
}

/// Whether something stands in the same line behind a statement that leaves.
fn hides_the_rest(statement: &str) -> bool {
    LEAVES.is_match(statement)
        && statement
            .split_once(';')
            .is_some_and(|(_, rest)| rest.trim_start().chars().next().is_some_and(|c| c != '}'))
}

/// How much deeper in brackets a line ends than it begins.
fn brackets(line: &str) -> i64 {
    line.chars().fold(0, |depth, c| match c {
        '(' | '[' | '{' => depth + 1,
        ')' | ']' | '}' => depth - 1,
        _ => depth,
    })
}

fn indent(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).map(|c| if c == '\t' { 8 } else { 1 }).sum()
}

/// A block of a language that shows its blocks by indentation.
struct Block {
    indent: usize,
    first: usize,
    kind: BlockKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockKind {
    Function(String),
    Class { name: String, tests: bool },
    Never,
    Other,
}

#[derive(Default)]
struct Blocks {
    open: Vec<Block>,
    /// Lines at least so far in are behind a statement that leaves.
    left: Option<usize>,
    dead: Vec<bool>,
    /// By the names around it and its own: where a test begins and ends.
    tests: BTreeMap<Vec<String>, (usize, usize)>,
}

impl Blocks {
    fn by_indentation(lines: &[&str]) -> Vec<bool> {
        Self::walk(lines, None)
    }

    fn python(lines: &[&str]) -> Vec<bool> {
        // A class that others build on may hold tests whatever its name.
        let bases = lines.iter().filter_map(|l| CLASS.captures(l.trim_start())?.get(2));
        let bases: BTreeSet<&str> = bases
            .flat_map(|b| b.as_str().split(|c: char| !c.is_alphanumeric() && c != '_'))
            .filter(|b| !b.is_empty())
            .collect();
        Self::walk(lines, Some(&bases))
    }

    /// `bases` of classes for Python, which alone has rules of where a test may stand.
    fn walk(lines: &[&str], bases: Option<&BTreeSet<&str>>) -> Vec<bool> {
        let mut blocks = Self { dead: vec![false; lines.len()], ..Self::default() };
        let mut depth = 0_i64;
        // The statement that is being left with, until its brackets are closed.
        let mut leaving = None;
        for (n, line) in lines.iter().enumerate() {
            let statement = line.trim();
            if statement.is_empty() {
                continue;
            }
            let starts = depth <= 0;
            if starts {
                blocks.statement(n, indent(line), statement, bases);
                leaving = leaves(statement, bases.is_some()).then(|| indent(line));
            } else if blocks.is_dead() {
                blocks.kill(n, n + 1);
            }
            depth = depth.max(0) + brackets(line);
            if depth <= 0
                && let Some(indent) = leaving.take()
                && !statement.ends_with('\\')
            {
                blocks.left = Some(blocks.left.map_or(indent, |left| left.min(indent)));
            }
        }
        while blocks.close(lines.len()) {}
        blocks.dead
    }

    fn is_dead(&self) -> bool {
        self.left.is_some() || self.open.iter().any(|b| b.kind == BlockKind::Never)
    }

    fn kill(&mut self, from: usize, to: usize) {
        for slot in self.dead.iter_mut().take(to).skip(from) {
            *slot = true;
        }
    }

    /// Closes the innermost block before line `n`.
    fn close(&mut self, n: usize) -> bool {
        let Some(block) = self.open.pop() else { return false };
        if let BlockKind::Function(name) = &block.kind
            && name.starts_with("test")
        {
            let mut key = self.path();
            key.push(name.clone());
            // A second test of the same name takes the place of the first.
            if let Some((first, end)) = self.tests.insert(key, (block.first, n)) {
                self.kill(first, end);
            }
        }
        true
    }

    fn path(&self) -> Vec<String> {
        self.open
            .iter()
            .map(|b| match &b.kind {
                BlockKind::Function(name) | BlockKind::Class { name, .. } => name.clone(),
                BlockKind::Never | BlockKind::Other => format!("{}", b.first),
            })
            .collect()
    }

    fn statement(&mut self, n: usize, indent: usize, statement: &str, bases: Option<&BTreeSet<&str>>) {
        if self.left.is_some_and(|left| indent < left) {
            self.left = None;
        }
        while self.open.last().is_some_and(|b| b.indent >= indent) {
            self.close(n);
        }
        let kind = kind_of(statement, bases);
        let misplaced = bases.is_some()
            && test_start(statement)
            && self
                .open
                .iter()
                .any(|b| matches!(&b.kind, BlockKind::Function(_) | BlockKind::Class { tests: false, .. }));
        if self.is_dead() || misplaced || hides_the_rest(statement) {
            self.kill(n, n + 1);
        }
        if let Some(kind) = kind {
            self.open.push(Block { indent, first: n, kind });
        }
    }
}

fn kind_of(statement: &str, bases: Option<&BTreeSet<&str>>) -> Option<BlockKind> {
    if NEVER.is_match(statement) {
        return Some(BlockKind::Never);
    }
    let bases = bases?;
    if let Some(name) = DEF.captures(statement).and_then(|c| c.get(1)) {
        return Some(BlockKind::Function(name.as_str().to_owned()));
    }
    if let Some(captures) = CLASS.captures(statement)
        && let Some(name) = captures.get(1).map(|n| n.as_str())
    {
        let builds_on = captures.get(2).map(|b| b.as_str().trim()).unwrap_or_default();
        // What stands in the next line is a base too.
        let plain = matches!(builds_on, "" | "object") && brackets(statement) == 0;
        let tests = name.starts_with("Test") || !plain || bases.contains(name);
        return Some(BlockKind::Class { name: name.to_owned(), tests });
    }
    statement.ends_with(':').then_some(BlockKind::Other)
}

fn by_braces(language: Language, lines: &[&str]) -> Vec<bool> {
    let mut dead = Vec::with_capacity(lines.len());
    let mut depth = 0_i64;
    let mut all = 0_i64;
    // Everything deeper than this is under `if false`.
    let mut never: Option<i64> = None;
    // Everything at least as deep as this is behind a statement that leaves.
    let mut left: Option<i64> = None;
    // A statement that leaves, not closed yet: its depth in braces and in all brackets.
    let mut leaving: Option<(i64, i64)> = None;
    let mut excluded = 0_u32;
    let mut before = "";
    for line in lines {
        let statement = line.trim();
        if language == Language::C && statement.starts_with('#') {
            excluded = preprocess(statement, excluded);
        }
        let (lowest, after) = braces(depth, statement);
        if never.is_some_and(|never| lowest <= never) {
            never = None;
        }
        let case = statement.starts_with("case ") || statement.starts_with("default");
        if left.is_some_and(|left| lowest < left || (case && depth == left)) {
            left = None;
        }
        let unconditional = !may_be_conditional(language, before);
        let hides = unconditional && hides_the_rest(statement);
        dead.push(excluded > 0 || never.is_some() || left.is_some() || hides);
        if never.is_none() && NEVER.is_match(statement.trim_start_matches("} ").trim_start_matches("else ")) {
            never = Some(lowest.min(depth));
        }
        // A block may begin with such a statement in the line that opens it.
        let tail = statement.rsplit_once('{').map(|(_, tail)| tail.trim_start());
        if leaving.is_some() {
            // One is enough.
        } else if leaves(statement, true) && unconditional {
            leaving = Some((depth, all));
        } else if let Some(tail) = tail.filter(|tail| !tail.contains('}') && leaves(tail, true)) {
            leaving = Some((after, all + brackets(statement) - brackets(tail)));
        }
        all += brackets(statement);
        depth = after;
        if let Some((at, level)) = leaving
            && all <= level
        {
            leaving = None;
            if left.is_none() && depth >= at {
                left = Some(at);
            }
        }
        if !statement.is_empty() {
            before = statement;
        }
    }
    dead
}

/// How deep in `#if` lines that never hold we are after a line of the preprocessor.
fn preprocess(line: &str, excluded: u32) -> u32 {
    let word: String =
        line.trim_start_matches('#').trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    match (word.as_str(), excluded) {
        ("if", 0) => u32::from(PREPROCESSOR_NEVER.is_match(line)),
        ("if" | "ifdef" | "ifndef", 1..) => excluded.saturating_add(1),
        ("endif", 1..) => excluded - 1,
        ("else" | "elif", 1) => 0,
        (_, _) => excluded,
    }
}

/// The least depth in braces within a line, and the one after it.
fn braces(depth: i64, line: &str) -> (i64, i64) {
    line.chars().fold((depth, depth), |(lowest, depth), c| match c {
        '{' => (lowest, depth + 1),
        '}' => (lowest.min(depth - 1), depth - 1),
        _ => (lowest, depth),
    })
}

/// Whether the line before may be an `if` without braces.
fn may_be_conditional(language: Language, before: &str) -> bool {
    if matches!(language, Language::Rust | Language::Go) {
        return before.ends_with("=>");
    }
    let condition =
        ["if", "else if", "} else if", "for", "while"].iter().any(|word| before.starts_with(word));
    before.ends_with("else") || (before.ends_with(')') && (condition || brackets(before) < 0))
}

#[cfg(test)]
mod tests {
    use super::super::strip::strip;
    use super::*;

    /// The lines that are never run, from 1.
    fn dead(language: Language, text: &str) -> Vec<usize> {
        let dead = unreached(language, &strip(language, text));
        (1..).zip(dead).filter(|(_, dead)| *dead).map(|(n, _)| n).collect()
    }

    #[test]
    fn what_stands_behind_a_return_is_never_run() {
        for (language, text, lines) in [
            (Language::Python, "def test_a():\n    return\n    assert x\n    assert y\nassert z", vec![3, 4]),
            (Language::Python, "def test_a():\n    return (\n        1\n    )\n    assert y", vec![5]),
            (Language::Python, "def test_a():\n    if x:\n        return\n    assert y", vec![]),
            (Language::Python, "def test_a():\n    for x in y:\n        continue\n        assert x", vec![4]),
            (Language::Rust, "fn a() {\n    return;\n    assert!(x);\n}\nfn b() {", vec![3]),
            (Language::Rust, "fn a() {\n    if x {\n        return;\n    }\n    assert!(x);\n}", vec![]),
            (Language::Go, "func TestA(t *testing.T) {\n\treturn\n\tt.Error(1)\n}", vec![3]),
            (Language::Go, "switch x {\ncase 1:\n\treturn\ncase 2:\n\tt.Error(1)\n}", vec![]),
            (Language::Script, "it('a', () => {\n  return;\n  expect(x);\n});\nexpect(y);", vec![3]),
            (Language::Script, "it('a', () => {\n  if (x)\n    return;\n  expect(x);\n});", vec![]),
            (
                Language::Script,
                "it('a', () => {\n  return f(() => {\n    g();\n  });\n  expect(x);\n});",
                vec![5],
            ),
            (Language::Script, "it('a', () => { return;\n  expect(x);\n});\nexpect(y);", vec![2]),
            (Language::Rust, "fn a() {\n    return; assert!(x);\n}", vec![2]),
            (Language::Rust, "match x {\n    A =>\n        return,\n    B => assert!(x),\n}", vec![]),
            (Language::Ruby, "it \"a\" do\n  next if x\n  expect(x)\nend", vec![]),
            (Language::Ruby, "it \"a\" do\n  next\n  expect(x)\nend\nexpect(y)", vec![3]),
        ] {
            assert_eq!(dead(language, text), lines, "{text}");
        }
    }

    #[test]
    fn what_stands_under_a_condition_that_never_holds_is_never_run() {
        for (language, text, lines) in [
            (Language::Python, "if False:\n    assert x\n\n    assert y\nelse:\n    assert z", vec![2, 4]),
            (Language::Python, "if __name__ == '__main__':\n    f()", vec![2]),
            (Language::Rust, "if false {\n  a();\n} else {\n  b();\n}\nc();", vec![2]),
            (Language::Script, "if (false) {\n  a();\n  if (x) {\n    b();\n  }\n}\nc();", vec![2, 3, 4, 5]),
            (Language::C, "a\n#if 0\nb\n#if X\nc\n#endif\n#else\nd\n#endif\ne", vec![2, 3, 4, 5, 6]),
        ] {
            assert_eq!(dead(language, text), lines, "{text}");
        }
    }

    #[test]
    fn a_test_of_python_where_none_is_looked_for_is_none() {
        for (text, lines) in [
            ("def f():\n    def test_a():\n        assert x", vec![2]),
            ("class A:\n    def test_a(self):\n        assert x", vec![2]),
            ("class TestA:\n    def test_a(self):\n        assert x", vec![]),
            ("class A(TestCase):\n    def test_a(self):\n        assert x", vec![]),
            ("class A:\n    def test_a(self):\n        assert x\nclass TestB(A, C):\n    pass", vec![]),
            ("def test_a():\n    assert x\ndef test_a():\n    pass", vec![1, 2]),
            ("if x:\n    def test_a():\n        a\nelse:\n    def test_a():\n        b", vec![]),
            (
                "class TestA:\n    def test_a(self):\n        a\nclass TestB:\n    def test_a(self):\n        b",
                vec![],
            ),
        ] {
            assert_eq!(dead(Language::Python, text), lines, "{text}");
        }
    }
}
