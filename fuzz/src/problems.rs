//! What every refusal of a file must be like.

use peers_store::load::{LoadError, Problem};

/// Most problems of one file that are told, with the line that says that there are more.
const TOLD: usize = 51;
/// Longest text of one part of a problem, bytes.
const LONGEST: usize = 4 * 1024;

/// Every problem points into the text and can be printed.
pub(crate) fn tellable(text: &str, error: &LoadError) {
    let problems = error.problems();
    assert!(!problems.is_empty() && problems.len() <= TOLD, "{} problems", problems.len());
    let shown = error.to_string();
    assert!(shown.len() <= TOLD * 3 * LONGEST);
    assert!(shown.lines().all(|line| !line.is_empty()), "an empty line: {shown:?}");
    for problem in problems {
        one(text, problem);
    }
}

fn one(text: &str, problem: &Problem) {
    let Problem { line, column, message, remedy, snippet } = problem;
    assert!(!message.trim().is_empty());
    for part in [Some(message), remedy.as_ref(), Some(snippet)].into_iter().flatten() {
        assert!(part.len() <= LONGEST, "{} bytes: {part}", part.len());
        let unprintable = |c: char| c.is_control() && c != '\n';
        assert!(!part.contains(unprintable), "a control character in {part:?}");
    }
    assert!(!message.contains('\n'), "{message:?}");
    assert_eq!(line.is_some(), column.is_some());
    let (Some(line), Some(column)) = (line, column) else { return };
    // A place behind the last line is where the text ends.
    let lines = text.split('\n').count();
    let line = usize::try_from(*line).expect("small");
    let column = usize::try_from(*column).expect("small");
    assert!(line >= 1 && line <= lines + 1, "line {line} of {lines}");
    let chars = text.split('\n').nth(line - 1).unwrap_or_default().chars().count();
    assert!(column >= 1 && column <= chars + 1, "column {column} of {chars} in line {line}");
}
