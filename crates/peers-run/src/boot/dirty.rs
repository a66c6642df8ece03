//! Uncommitted changes at a start.

use peers_git::{ControlDir, GitError, PeerRepo};
use peers_model::CommitId;
use peers_sys::term;

/// Changes that are named in a warning, and that are counted.
const NAMED: usize = 10;
const COUNTED: usize = 1000;

/// Uncommitted changes, so many as are worth counting.
pub(super) fn uncommitted(
    control: &mut ControlDir,
    repo: &PeerRepo,
    base: Option<&CommitId>,
) -> Result<Vec<String>, GitError> {
    let imported = control.import(repo, base)?;
    let found = control.dirty_files(repo.work_dir(), &imported.head, COUNTED)?;
    Ok(found.into_iter().map(|file| file.path).collect())
}

/// What an operator who left uncommitted changes must know: agents commit what they find.
pub(super) fn warning(changes: &[String], left_by_a_turn: bool) -> Option<String> {
    if changes.is_empty() {
        return None;
    }
    let whose = if left_by_a_turn { "" } else { " of yours" };
    let names: Vec<String> = changes.iter().take(NAMED).map(|path| term::line(path, 60)).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        _ if changes.len() >= COUNTED => " and many more".to_owned(),
        more => format!(" and {more} more"),
    };
    Some(format!("uncommitted changes{whose} may end up in an agent's commit: {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncommitted_changes_are_named_up_to_ten() {
        let names: Vec<String> = (1..=13).map(|n| format!("{n}.txt")).collect();
        assert_eq!(warning(&[], false), None);
        assert_eq!(
            warning(&names[..2], false).unwrap(),
            "uncommitted changes of yours may end up in an agent's commit: 1.txt, 2.txt"
        );
        let many = warning(&names, true).unwrap();
        assert!(many.starts_with("uncommitted changes may end up"), "an agent left them: {many}");
        assert!(many.ends_with("9.txt, 10.txt and 3 more"), "{many}");
        let hostile = warning(&["a\u{1b}[2J\nb".to_owned()], false).unwrap();
        assert!(!hostile.contains(['\u{1b}', '\n']), "{hostile:?}");
    }
}
