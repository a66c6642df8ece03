//! Tests of `yaml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Config {
    name: String,
    on: bool,
    count: u32,
    signed: i64,
    ratio: f64,
    maybe: Option<u32>,
    list: Vec<Goal>,
    env: BTreeMap<String, String>,
    kind: Kind,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Goal {
    id: peers_model::GoalId,
    #[serde(default)]
    hard: bool,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    Plain,
    Fancy {
        size: u8,
    },
}

fn read(text: &str) -> Result<Config, YamlError> {
    from_str("c.yaml", text)
}

fn refused(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn a_document_of_everything() {
    let text = "name: x\non: true\ncount: 3\nsigned: -4\nratio: 1\nmaybe: 5\n\
        list:\n- {id: tests, hard: yes}\nenv: {PORT: 8080, A: 'b', YES: yes}\nkind: {fancy: {size: 7}}\n";
    let config = read(text).unwrap();
    assert!(config.on && config.list[0].hard);
    assert_eq!((config.count, config.signed, config.ratio, config.maybe), (3, -4, 1.0, Some(5)));
    assert_eq!(config.env["PORT"], "8080");
    assert_eq!(config.env["YES"], "yes");
    assert_eq!(config.kind, Kind::Fancy { size: 7 });
}

#[test]
fn a_quoted_boolean_is_no_boolean() {
    assert_eq!(
        refused("name: x\non: 'false'\n"),
        "c.yaml:2:5: expected `true` or `false`, found the text `false`; write it without quotes"
    );
    for text in ["on: \"true\"", "on: 1", "on: 0", "on: null", "on: maybe", "on: []", "on:"] {
        assert!(refused(text).starts_with("c.yaml:1:"), "{text}");
    }
    assert!(read("on: |\n  true").is_err());
    for text in ["on: true", "on: yes", "on: True", "on: ON"] {
        assert!(read(text).unwrap().on, "{text}");
    }
}

#[test]
fn integers_are_neither_booleans_nor_floats_nor_quoted() {
    for text in [
        "count: true",
        "count: 1.0",
        "count: 1.5",
        "count: '5'",
        "count: 1e3",
        "count: -1",
        "count: yes",
        "count: 4294967296",
        "count: .inf",
        "count: ",
        "count: 99999999999999999999999",
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.line, Some(1), "{text}: {error}");
    }
    assert_eq!(refused("count: true"), "c.yaml:1:8: expected a whole number, found boolean `true`");
    assert_eq!(read("count: 0x10").unwrap().count, 16);
}

#[test]
fn floats_take_integers_but_nothing_quoted_or_endless() {
    assert!((read("ratio: 2.5").unwrap().ratio - 2.5).abs() < f64::EPSILON);
    for text in ["ratio: '2.5'", "ratio: .nan", "ratio: .inf", "ratio: 1e999", "ratio: true"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn strictness_reaches_nested_places() {
    assert_eq!(
        refused("list:\n- id: tests\n- id: lint\n  hard: 'yes'\n"),
        "c.yaml:4:9: expected `true` or `false`, found the text `yes`; write it without quotes"
    );
    assert_eq!(
        from_str::<Vec<u8>>("x", "- 1\n- 2\n- x\n").unwrap_err().to_string(),
        "x:3:3: expected a whole number, found the text `x`"
    );
    assert!(refused("maybe: '5'").starts_with("c.yaml:1:8: expected a whole number"));
    assert!(refused("kind: {fancy: {size: '7'}}").contains("expected a whole number"));
    assert!(from_str::<Vec<(bool, Option<u8>)>>("x", "- [true, '1']").is_err());
    assert!(from_str::<BTreeMap<u8, bool>>("x", "1: true\n2: 'no'").is_err());
    assert_eq!(
        from_str::<BTreeMap<u8, bool>>("x", "1: true\n2: no").unwrap(),
        [(1, true), (2, false)].into()
    );
}

#[test]
fn an_unknown_key_is_named_with_a_suggestion() {
    assert_eq!(refused("name: x\ncuont: 3\n"), "c.yaml:2:1: unknown key `cuont` (did you mean `count`?)");
    assert!(refused("banana: 3\n").contains("(known are `name`, `on`, `count`"));
    assert_eq!(
        refused("list:\n- id: tests\n  hrad: true\n"),
        "c.yaml:3:3: unknown key `hrad` (did you mean `hard`?)"
    );
    assert!(refused("kind: fnacy").contains("unknown value `fnacy` (did you mean `fancy`?)"));
}

#[test]
fn a_missing_key_points_at_its_mapping() {
    assert_eq!(refused("list:\n- hard: true\n"), "c.yaml:2:3: missing key `id`");
}

#[test]
fn a_value_that_breaks_a_grammar_points_at_itself() {
    let error = read("list:\n- id: tests\n- id: Not An Id\n").unwrap_err();
    assert_eq!((error.line, error.column), (Some(3), Some(7)), "{error}");
    assert!(error.message.contains("not a valid goal id"), "{error}");
}

#[test]
fn duplicate_keys_are_refused_in_structures_and_maps() {
    assert_eq!(refused("name: a\non: true\nname: b\n"), "c.yaml:3:1: duplicate key `name`");
    assert_eq!(refused("env:\n  A: x\n  A: y\n"), "c.yaml:3:3: duplicate key `A`");
    assert!(from_str::<BTreeMap<String, String>>("x", "a: 1\n'a': 2\n").is_err());
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..20 {
        let row = vec![format!("*a{}", i - 1); 10].join(", ");
        writeln!(bomb, "a{i}: &a{i} [{row}]").unwrap();
    }
    assert!(from_str::<serde_json::Value>("x", &bomb).is_err());
    assert!(from_str::<serde::de::IgnoredAny>("x", &bomb).is_err());
    assert!(read(&bomb).is_err());
    let wide = format!("a: &a [x]\nb: [{}]\n", vec!["*a"; 5000].join(", "));
    assert!(from_str::<serde_json::Value>("x", &wide).is_err());
}

#[test]
fn deep_nesting_is_refused() {
    for text in [
        format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)),
        format!("{}{}", "{a: ".repeat(10_000), "}".repeat(10_000)),
        (0..10_000).fold(String::new(), |mut out, i| {
            out.push_str(&" ".repeat(i % 1000));
            out.push_str("a:\n");
            out
        }),
        "- ".repeat(10_000),
    ] {
        assert!(from_str::<serde_json::Value>("x", &text).is_err());
    }
    let fine = format!("{}{}", "[".repeat(30), "]".repeat(30));
    assert!(from_str::<serde_json::Value>("x", &fine).is_ok());
}

#[test]
fn tags_further_documents_and_broken_syntax_are_refused() {
    for text in [
        "name: !!python/object:os.system x",
        "name: !custom x",
        "name: a\n---\nname: b\n",
        "name: [",
        "name: \"x",
        "name: *nowhere",
        "- a",
        "just text",
        "name: x\n bad: y",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn the_snippet_shows_the_line_with_a_caret() {
    let error = read("name: x\nlist:\n- id: tests\n  hrad: true\n").unwrap_err();
    assert_eq!(error.snippet(), "3 | - id: tests\n4 |   hrad: true\n  |   ^");
    let error = read("cuont: 3").unwrap_err();
    assert_eq!(error.snippet(), "1 | cuont: 3\n  | ^");
}

#[test]
fn messages_carry_no_control_bytes() {
    let error = from_str::<Config>("\u{1b}[2Jc.yaml", "\"\\e[31mkey\": 1\n").unwrap_err();
    let shown = format!("{error}{}", error.snippet());
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

/// The place of an error, which lies in the text.
fn place<T: DeserializeOwned>(text: &str) -> (u32, u32) {
    let Err(error) = from_str::<T>("c", text) else { panic!("{text:?} is read") };
    let (line, column) = (error.line.unwrap(), error.column.unwrap());
    let shown = text.split('\n').nth(usize::try_from(line).unwrap() - 1).expect("a line of the text");
    assert!(usize::try_from(column).unwrap() <= shown.chars().count() + 1, "{line}:{column} of {text:?}");
    (line, column)
}

#[test]
fn a_place_is_counted_in_the_lines_that_are_shown() {
    // The parser ends a line at a lone carriage return too.
    assert_eq!(place::<Config>("name: a\ron: 'x'\ncount: 1\n"), (1, 13));
    assert_eq!(place::<Config>("name: a\r\non: 'x'\r\n"), (2, 5));
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[-a-c:\\[\\]{}&*!'\"|>%@,#~ \r\n\t0-9.]{0,80}") {
        let value = from_str::<serde_json::Value>("x", &text);
        if let Err(error) = value {
            prop_assert!(!error.message.is_empty());
        }
        if read(&text).is_err_and(|error| error.line.is_some()) {
            place::<Config>(&text);
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read by the derived code alone")]
struct Ranges {
    #[serde(default)]
    small: Option<u8>,
    #[serde(default)]
    positive: Option<std::num::NonZeroU32>,
    #[serde(default)]
    inner: Option<std::collections::BTreeMap<String, u8>>,
    #[serde(default)]
    list: Vec<String>,
}

fn words(text: &str) -> String {
    from_str::<Ranges>("c", text).unwrap_err().to_string()
}

#[test]
fn a_number_out_of_range_is_told_with_its_key_and_its_range() {
    for (text, says) in [
        ("positive: 0", "`positive` must be a whole number of at least 1, found the number `0`"),
        ("{\"positive\": -1}", "`positive` must be a whole number of at least 1, found the number `-1`"),
        ("a: 1\npositive: 4294967296", "unknown key `a`"),
        ("positive: 4294967296", "`positive` must be a whole number from 1 to 4294967295"),
        ("small: 256", "`small` must be a whole number from 0 to 255, found the number `256`"),
        ("small: -1", "`small` must be a whole number of at least 0"),
        ("small: 1.5", "expected a whole number, found `1.5`, which is none"),
        ("small: 18446744073709551616", "which is too large"),
    ] {
        assert!(words(text).contains(says), "{text}: {}", words(text));
    }
}

#[test]
fn a_node_of_the_wrong_kind_is_told_in_plain_words() {
    for (text, says) in [
        ("42", "c:1:1: expected a mapping (`key: value`)"),
        ("inner: [1]", "expected a mapping (`key: value`)"),
        ("list: 5", "expected a list (`- entry`)"),
        ("list: [{a: 1}]", "expected text"),
    ] {
        assert!(words(text).contains(says), "{text}: {}", words(text));
    }
}

#[test]
fn limits_of_the_parser_are_told_in_plain_words_with_their_place() {
    let aliases = format!("list:\n- &a x\n{}", "- *a\n".repeat(600));
    for (text, says) in [
        ("[".repeat(200), "c:1:33: nested deeper than 32 levels"),
        ("{\"a\":".repeat(200), "nested deeper than 32 levels"),
        ("list: []\n---\nlist: []\n".to_owned(), "a second document begins"),
        (aliases, "more than 500 aliases"),
        ("list: [*nothing]".to_owned(), "c:1:8: an alias (`*name`) without an anchor"),
    ] {
        let told = words(&text);
        assert!(told.contains(says), "{told}");
        assert!(
            told.starts_with("c:") && !told.contains("breached") && !told.contains("recursion"),
            "{told}"
        );
    }
}

#[test]
fn a_tab_in_front_of_a_key_is_told_with_its_own_line() {
    let error = from_str::<serde_json::Value>("goals", "goals:\n- id: real\n\ttype: hard\n").unwrap_err();
    assert_eq!(error.to_string(), "goals:3:1: a tab in the indentation (indent with blanks)");
}
