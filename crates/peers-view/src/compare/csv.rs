//! The comparison for a spreadsheet.

use peers_sys::term;

use super::columns::{Comparison, Value};

/// The comparison as RFC 4180 has it: a line for each measure, first the values, then by how much each further
/// column differs from the first, then whether each value is at least that much. Lines end in CR LF.
#[must_use]
pub fn compare_csv(comparison: &Comparison) -> String {
    let mut out = String::new();
    let names = || comparison.columns.iter().map(|column| column.name.clone());
    let differ = names().skip(1).map(|name| format!("{name} (delta)"));
    let least = names().map(|name| format!("{name} (at least)"));
    let head = ["measure".to_owned(), "unit".to_owned()];
    line(&mut out, head.into_iter().chain(names()).chain(differ).chain(least));
    for row in &comparison.rows {
        let unit = serde_json::to_value(row.unit).ok();
        let unit = unit.and_then(|unit| unit.as_str().map(str::to_owned)).unwrap_or_default();
        let values = row.values.iter().map(|value| match value {
            None => String::new(),
            Some(Value::Number(n)) => format!("{n}"),
            Some(Value::Text(text)) => text.clone(),
        });
        let deltas = row.deltas.iter().skip(1).map(|delta| delta.map(|n| format!("{n}")).unwrap_or_default());
        let least = row.at_least.iter().map(|least| format!("{least}"));
        line(&mut out, [row.key.to_owned(), unit].into_iter().chain(values).chain(deltas).chain(least));
    }
    out
}

fn line(out: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|text| cell(&text)).collect();
    out.push_str(&cells.join(","));
    out.push_str("\r\n");
}

/// One cell. What a spreadsheet would take for a formula begins with an apostrophe, unless it is a number.
fn cell(text: &str) -> String {
    let text = term::inline(text);
    // Some of them do not look at blanks.
    let formula = text.trim_start().starts_with(['=', '+', '-', '@']) && !is_number(&text);
    let text = if formula { format!("'{text}") } else { text };
    if text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// `-1.5`, `+3`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let all = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    all(whole) && all(part)
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn no_cell_is_a_formula_and_none_leaves_its_place() {
        for (text, due) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+3", "+3"),
            ("-1.5", "-1.5"),
            ("-1e5", "'-1e5"),
            ("-", "'-"),
            ("+", "'+"),
            ("-1.", "'-1."),
            ("--1", "'--1"),
            ("-cmd|'/c calc'!A0", "'-cmd|'/c calc'!A0"),
            ("=a,b", "\"'=a,b\""),
            ("\u{1b}[2J=1", "'=1"),
            ("a\"b", "\"a\"\"b\""),
            ("a\r\nb", "a b"),
            ("\t=1", "' =1"),
            ("", ""),
        ] {
            assert_eq!(cell(text), due, "{text:?}");
        }
    }
}
