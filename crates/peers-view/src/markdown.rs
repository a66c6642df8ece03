//! Markdown whose structure no foreign text can change.

use std::fmt::Write as _;

use peers_sys::term;

/// Terminal cells of one table cell or paragraph. More than the code spans in it can hold together, so
/// that none is cut.
const WIDEST: usize = 2000;

/// Terminal cells to which the cells of a column are filled up; wider ones stick out.
const COLUMN: usize = 48;

/// Foreign text as a code span: one line, nothing in it means anything. Empty text gives nothing.
pub(crate) fn code(text: &str, width: usize) -> String {
    let text = term::line(text, width);
    let text = text.trim();
    if text.is_empty() {
        return String::new();
    }
    // A code span ends at a backtick, a table cell at a bar, whatever stands around them.
    format!("`{}`", text.replace('`', "'").replace('|', "\u{a6}"))
}

/// A text that may have commands in backticks as one code span, in which they can still be pasted. Not
/// for a table.
fn verbatim(text: &str) -> String {
    let text = term::line(text, WIDEST);
    // The span ends at as many backticks as it begins with.
    let runs = text.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default() + 1);
    format!("{fence} {} {fence}", text.trim())
}

/// Our own words, with what would break a table taken out.
fn plain(text: &str) -> String {
    term::line(text, WIDEST).replace('|', "\\|")
}

/// A document in the making.
#[derive(Debug, Default)]
pub(crate) struct Document {
    out: String,
}

impl Document {
    pub(crate) fn title(text: &str) -> Self {
        Self { out: format!("# {}\n", plain(text)) }
    }

    pub(crate) fn section(&mut self, text: &str) {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(self.out, "\n## {}\n", plain(text));
    }

    /// A paragraph of its own.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.gap();
        let _ = writeln!(self.out, "{}", plain(text));
    }

    /// A paragraph that begins with our own words and goes on with a text whose commands are pasted.
    pub(crate) fn commands(&mut self, words: &str, text: &str) {
        self.gap();
        let _ = writeln!(self.out, "{words} {}", verbatim(text));
    }

    pub(crate) fn item(&mut self, text: &str) {
        let after_item = self.out.lines().last().is_some_and(|line| line.starts_with("- "));
        if !after_item {
            self.gap();
        }
        let _ = writeln!(self.out, "- {}", plain(text));
    }

    /// A table, its columns below each other as it stands. Cells are our own words, or foreign text made by
    /// [`code`].
    pub(crate) fn table(&mut self, head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
        let head: Vec<String> = head.iter().map(|&cell| plain(cell)).collect();
        let rows: Vec<Vec<String>> =
            rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
        let mut widths = vec![3; head.len()];
        for row in rows.iter().chain([&head]) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = term::width(cell).min(COLUMN).max(*width);
            }
        }
        // Nothing stands behind the last column.
        if let Some(last) = widths.last_mut() {
            *last = 3;
        }
        let line = |row: &[String]| {
            let pad = |(cell, width): (&String, &usize)| {
                format!("{cell}{}", " ".repeat(width.saturating_sub(term::width(cell))))
            };
            row.iter().zip(&widths).map(pad).collect::<Vec<_>>().join(" | ")
        };
        self.gap();
        let _ = writeln!(self.out, "| {} |", line(&head));
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let _ = writeln!(self.out, "| {} |", rule.join(" | "));
        for row in &rows {
            let _ = writeln!(self.out, "| {} |", line(row));
        }
    }

    /// A blank line, unless there is one.
    fn gap(&mut self) {
        if !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_leave_its_cell() {
        let mut doc = Document::title("x");
        let hostile = "a`</td>| b\n\n# head\n[l](http://x) \u{1b}[31m![i](y)";
        doc.table(&["a", "b"], [vec![code(hostile, 80), "ours".into()]]);
        let text = doc.finish();
        let row = text.lines().last().unwrap();
        assert_eq!(row.matches('|').count(), 3, "{row}");
        assert_eq!(row.matches('`').count(), 2, "{row}");
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains('\u{1b}'));
    }

    #[test]
    fn a_command_stays_what_it_is_and_does_not_leave_its_code_span() {
        let mut doc = Document::default();
        doc.commands("Alert:", "x is gone: `a | b 'c'`");
        assert_eq!(doc.finish(), "\nAlert: `` x is gone: `a | b 'c'` ``\n");
        assert_eq!(verbatim("a``b`\n# c"), "``` a``b` # c ```");
    }

    #[test]
    fn the_columns_of_a_table_stand_below_each_other() {
        let mut doc = Document::default();
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        doc.table(&["what", "spent"], [row(["tokens", "1"]), row(["\u{30c6}\u{30b9}\u{30c8}", "12345678"])]);
        let lines = ["| what   | spent |", "| ------ | --- |", "| tokens | 1   |"];
        let text = doc.finish();
        assert!(text.trim_start().starts_with(&lines.join("\n")), "{text}");
        let ends: Vec<usize> = text
            .trim()
            .lines()
            .map(|line| term::width(line.rsplitn(3, '|').last().unwrap_or_default()))
            .collect();
        assert_eq!(ends, [ends[0]; 4], "{text}");
    }

    #[test]
    fn nothing_is_no_code_span() {
        assert_eq!(code(" \u{202e} ", 80), "");
    }
}
