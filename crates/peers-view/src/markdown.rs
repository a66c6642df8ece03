//! Markdown whose structure no foreign text can change.

use std::fmt::Write as _;

use peers_sys::term;

/// Terminal cells of one table cell or paragraph. More than the code spans in it can hold together, so
/// that none is cut.
const WIDEST: usize = 2000;

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

    /// A table. Cells are our own words, or foreign text made by [`code`].
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        self.gap();
        let _ = writeln!(self.out, "| {} |", head.join(" | "));
        let _ = writeln!(self.out, "|{}", "---|".repeat(head.len()));
        for row in rows {
            let cells: Vec<String> = row.iter().map(|cell| plain(cell)).collect();
            let _ = writeln!(self.out, "| {} |", cells.join(" | "));
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
        doc.table(&["a", "b"], &[vec![code(hostile, 80), "ours".into()]]);
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
    fn nothing_is_no_code_span() {
        assert_eq!(code(" \u{202e} ", 80), "");
    }
}
