//! Tests of cargo.

use tree_sitter::Node;

use crate::symbol::children;
use crate::testing::{Assertion, SkipKind, Tests, asserts, walk};

pub(super) fn read(out: &mut Tests<'_>, root: Node<'_>) {
    items(out, root, "");
}

fn items(out: &mut Tests<'_>, node: Node<'_>, prefix: &str) {
    const DEEPEST: usize = 50;
    let mut attributes: Vec<Node<'_>> = Vec::new();
    for child in children(node) {
        match child.kind() {
            "inner_attribute_item" => {
                if path_of(out, child) == "cfg" && has_tests(out, node) {
                    out.skip(SkipKind::Conditional, child, prefix.trim_end_matches("::"), None, None);
                }
            }
            "attribute_item" => attributes.push(child),
            "line_comment" | "block_comment" => {}
            "function_item" => function(out, child, &std::mem::take(&mut attributes), prefix),
            "mod_item" => {
                let attributes = std::mem::take(&mut attributes);
                if let (Some(name), Some(body)) =
                    (out.field(child, "name"), child.child_by_field_name("body"))
                    && prefix.matches("::").count() < DEEPEST
                {
                    // `cfg(test)` alone is true of every run of tests.
                    let conditions = attributes.into_iter().filter(|attribute| {
                        path_of(out, *attribute) == "cfg" && !out.of(*attribute).contains("cfg(test)")
                    });
                    for attribute in conditions.filter(|_| has_tests(out, body)).collect::<Vec<_>>() {
                        out.skip(SkipKind::Conditional, attribute, format!("{prefix}{name}"), None, None);
                    }
                    items(out, body, &format!("{prefix}{name}::"));
                }
            }
            _ => attributes.clear(),
        }
    }
}

fn function(out: &mut Tests<'_>, node: Node<'_>, attributes: &[Node<'_>], prefix: &str) {
    let (Some(name), Some(body)) = (out.field(node, "name"), node.child_by_field_name("body")) else {
        return;
    };
    if !attributes.iter().any(|attribute| is_test(path_of(out, *attribute))) {
        out.helper(name, body, assertion);
        return;
    }
    let path = format!("{prefix}{name}");
    let mut panics = false;
    for attribute in attributes {
        let kind = match path_of(out, *attribute) {
            "ignore" => SkipKind::Skip,
            "cfg" | "cfg_attr" => SkipKind::Conditional,
            "should_panic" => {
                panics = true;
                continue;
            }
            _ => continue,
        };
        // `cfg_attr(miri, ignore)` leaves a test out; other attributes under a condition do not.
        let whole = out.of(*attribute);
        if whole.contains("cfg_attr") && !whole.contains("ignore") {
            continue;
        }
        let reason = reason(out, *attribute);
        out.skip(kind, *attribute, path.clone(), reason, Some(node));
    }
    out.test(path, node, body, assertion);
    if let Some(test) = out.found.last_mut().filter(|_| panics) {
        test.expects_error = true;
        test.asserts.push("should_panic".to_owned());
    }
}

/// Whether a test stands somewhere in a node.
fn has_tests(out: &Tests<'_>, node: Node<'_>) -> bool {
    let mut found = false;
    walk(node, &mut |inner| {
        found |= inner.kind() == "attribute_item" && is_test(path_of(out, inner));
        !found
    });
    found
}

/// The path of an attribute: `tokio::test` in `#[tokio::test(...)]`.
fn path_of<'t>(out: &Tests<'t>, attribute: Node<'_>) -> &'t str {
    let inner = attribute.named_child(0).and_then(|inner| inner.named_child(0));
    inner.map(|path| out.of(path)).unwrap_or_default()
}

fn is_test(path: &str) -> bool {
    let last = path.rsplit("::").next().unwrap_or(path);
    matches!(last, "test" | "test_case" | "rstest" | "quickcheck" | "wasm_bindgen_test")
}

/// `#[ignore = "..."]`.
fn reason(out: &Tests<'_>, attribute: Node<'_>) -> Option<String> {
    let value = attribute.named_child(0)?.child_by_field_name("value")?;
    Some(out.of(value).trim_matches('"').to_owned())
}

fn assertion(out: &Tests<'_>, node: Node<'_>) -> Option<Assertion> {
    const OF_ERROR: [&str; 4] = ["unwrap_err", "expect_err", "is_err", "should_panic"];
    match node.kind() {
        "macro_invocation" => {
            let name = out.field(node, "macro")?;
            let name = name.rsplit("::").next().unwrap_or(name);
            let name = name.trim_start_matches("debug_").trim_start_matches("prop_");
            if !asserts(name) && !matches!(name, "panic" | "unreachable") {
                return None;
            }
            let whole = out.of(node);
            let words = || whole.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let of_error = words().any(|word| word == "Err" || OF_ERROR.contains(&word));
            Some(if of_error { Assertion::OfError } else { Assertion::Plain })
        }
        "call_expression" => {
            let name = out.field(node, "function")?;
            let name = name.rsplit(['.', ':']).next().unwrap_or(name);
            match name {
                "unwrap_err" | "expect_err" => Some(Assertion::OfError),
                // Of an option or a result, which is there in each test.
                "expect" => None,
                _ => asserts(name).then_some(Assertion::Plain),
            }
        }
        _ => None,
    }
}
