//! A line diff of two short texts, for `peers goals diff`.

/// Cells of the table; beyond it the middle is shown as replaced.
const MOST: usize = 4_000_000;
/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'t> {
    Both(&'t str),
    Old(&'t str),
    New(&'t str),
}

/// A unified diff without file header; empty when the texts are equal.
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = compare(&old, &new);
    let changed = |line: &Line<'_>| !matches!(line, Line::Both(_));
    let mut shown = vec![false; lines.len()];
    for (at, _) in lines.iter().enumerate().filter(|(_, line)| changed(line)) {
        let to = (at + CONTEXT + 1).min(lines.len());
        for mark in shown.iter_mut().take(to).skip(at.saturating_sub(CONTEXT)) {
            *mark = true;
        }
    }
    let mut text = String::new();
    let (mut from_old, mut from_new, mut open) = (1_usize, 1_usize, false);
    for (line, shown) in lines.iter().zip(shown) {
        if shown && !open {
            let place = format!("@@ -{from_old} +{from_new} @@\n");
            text.push_str(&place);
        }
        open = shown;
        let (mark, content) = match line {
            Line::Both(content) => (' ', content),
            Line::Old(content) => ('-', content),
            Line::New(content) => ('+', content),
        };
        if shown {
            text.push(mark);
            text.push_str(content);
            text.push('\n');
        }
        from_old += usize::from(!matches!(line, Line::New(_)));
        from_new += usize::from(!matches!(line, Line::Old(_)));
    }
    text
}

fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (old.get(head..).unwrap_or_default(), new.get(head..).unwrap_or_default());
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let middle_old = old_rest.get(..old_rest.len() - tail).unwrap_or_default();
    let middle_new = new_rest.get(..new_rest.len() - tail).unwrap_or_default();
    let mut lines: Vec<Line<'t>> = old.iter().take(head).map(|line| Line::Both(line)).collect();
    if middle_old.len().saturating_mul(middle_new.len()) > MOST {
        lines.extend(middle_old.iter().map(|line| Line::Old(line)));
        lines.extend(middle_new.iter().map(|line| Line::New(line)));
    } else {
        longest_common(middle_old, middle_new, &mut lines);
    }
    lines.extend(old_rest.iter().skip(middle_old.len()).map(|line| Line::Both(line)));
    lines
}

/// The classic table of longest common subsequences, walked from the front.
fn longest_common<'t>(old: &[&'t str], new: &[&'t str], lines: &mut Vec<Line<'t>>) {
    let width = new.len() + 1;
    let mut table = vec![0_u32; (old.len() + 1) * width];
    let read = |table: &[u32], a: usize, b: usize| table.get(a * width + b).copied().unwrap_or(0);
    for (a, left) in old.iter().enumerate().rev() {
        for (b, right) in new.iter().enumerate().rev() {
            let best = if left == right {
                read(&table, a + 1, b + 1) + 1
            } else {
                read(&table, a + 1, b).max(read(&table, a, b + 1))
            };
            if let Some(cell) = table.get_mut(a * width + b) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    loop {
        match (old.get(a), new.get(b)) {
            (Some(left), Some(right)) if left == right => {
                lines.push(Line::Both(left));
                (a, b) = (a + 1, b + 1);
            }
            (Some(left), right) if right.is_none() || read(&table, a + 1, b) >= read(&table, a, b + 1) => {
                lines.push(Line::Old(left));
                a += 1;
            }
            (_, Some(right)) => {
                lines.push(Line::New(right));
                b += 1;
            }
            (_, None) => break,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_diff() {
        assert_eq!(unified("a\nb\n", "a\nb\n"), "");
    }

    #[test]
    fn a_changed_line_stands_between_its_neighbours() {
        assert_eq!(unified("a\nb\nc\n", "a\nx\nc\n"), "@@ -1 +1 @@\n a\n-b\n+x\n c\n");
    }

    #[test]
    fn far_apart_changes_are_hunks_of_their_own() {
        let old = (1..=20).map(|n: u32| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        let new = old.replace("2\n3\n", "2\nnew\n3\n").replace("20\n", "");
        let diff = unified(&old, &new);
        assert_eq!(diff.matches("@@ -").count(), 2, "{diff}");
        assert!(diff.contains("+new") && diff.contains("-20"), "{diff}");
    }

    #[test]
    fn an_empty_side_is_all_new() {
        assert_eq!(unified("", "a\n"), "@@ -1 +1 @@\n+a\n");
    }
}
