//! Code that is right and that the grammars do not know: it is written for them in another way, byte by byte, so that
//! each place stays where it is. What is told of a file is its own text.

use crate::language::Grammar;

/// Words that no name can be but one that is passed on: `export { a as null }`.
const RESERVED: [&str; 24] = [
    "break",
    "case",
    "catch",
    "class",
    "const",
    "delete",
    "do",
    "else",
    "enum",
    "false",
    "for",
    "function",
    "if",
    "in",
    "instanceof",
    "new",
    "null",
    "return",
    "switch",
    "this",
    "true",
    "typeof",
    "void",
    "while",
];

/// The text for the grammar; nothing where there is nothing to write in another way.
pub(crate) fn understood(grammar: Grammar, text: &str) -> Option<String> {
    if !matches!(grammar, Grammar::JavaScript | Grammar::TypeScript | Grammar::Tsx) {
        return None;
    }
    let mut bytes = text.as_bytes().to_vec();
    let mut changed = false;
    // What stands before a word: the sign, or the word.
    let mut before = String::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
        let Some(word) = rest.get(..end).filter(|word| !word.is_empty()) else {
            // Comments stand between words and are none.
            let comment = rest.strip_prefix("//").map(|rest| rest.find('\n').unwrap_or(rest.len()));
            let comment = comment.or_else(|| {
                rest.strip_prefix("/*").map(|rest| rest.find("*/").map_or(rest.len(), |end| end + 2))
            });
            if let Some(length) = comment {
                at += length + 2;
                continue;
            }
            let sign = rest.chars().next().unwrap_or(' ');
            if !sign.is_whitespace() {
                before = sign.to_string();
            }
            at += sign.len_utf8();
            continue;
        };
        let behind = rest.get(end..).unwrap_or_default().trim_start();
        // `interface Box<in out T>`
        let variance = matches!(word, "in" | "out")
            && matches!(before.as_str(), "<" | "," | "in" | "const")
            && behind.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let passed_on = before == "as" && RESERVED.contains(&word) && behind.starts_with([',', '}']);
        let masked = if variance { word.len() } else { usize::from(passed_on) };
        for byte in bytes.get_mut(at..at + masked).into_iter().flatten() {
            *byte = if variance { b' ' } else { b'_' };
            changed = true;
        }
        word.clone_into(&mut before);
        at += end;
    }
    changed.then(|| String::from_utf8(bytes).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use crate::Source;

    #[test]
    fn what_the_grammar_does_not_know_is_read_as_it_is_meant() {
        for (path, text, names) in [
            ("a.ts", "export interface Box<in out T, out U = unknown> { a: T }\n", vec!["Box"]),
            (
                "a.ts",
                "export interface Box<\n  /** why: <in> */\n  out Output, // and\n  in Input,\n> { a: Output }\n",
                vec!["Box"],
            ),
            ("a.tsx", "export class Box<const T, in U> {}\n", vec!["Box"]),
            (
                "a.js",
                "const _null = 1;\nexport { _null as null };\nfunction f() {}\nexport { f as instanceof, };\n",
                vec!["_null", "f"],
            ),
            (
                "a.ts",
                "const a = <T,>(x: T) => x as unknown;\nfor (const k in a) {}\nexport { a };\n",
                vec!["a"],
            ),
        ] {
            let source =
                Source::parse(path, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            let told: Vec<String> = source.symbols().into_iter().map(|symbol| symbol.path).collect();
            assert_eq!(told, names, "{text}");
            assert_eq!(source.errors(), 0);
        }
        for (path, text) in [
            ("a.ts", "interface Box<in out> {\n"),
            ("a.js", "export { a as null \n"),
            ("a.py", "class A(in B): pass\n"),
        ] {
            let source = Source::parse_loosely(path, text.as_bytes()).unwrap();
            assert!(source.errors() > 0 && Source::parse(path, text.as_bytes()).is_err(), "{text}");
        }
    }
}
