//! Files of the repository that a command of a plan names as its words.

use std::collections::BTreeSet;

use peers_git::{GitError, PeerRepo};
use peers_model::exit;
use peers_sys::term;

use super::ScaffoldError;

/// Endings of the names of scripts.
const SCRIPTS: [&str; 12] = ["bash", "bats", "cjs", "go", "js", "mjs", "php", "pl", "py", "rb", "sh", "ts"];

/// Words after which a command works in another directory.
const ELSEWHERE: [&str; 6] = ["cd", "pushd", "-C", "--cwd", "--directory", "--prefix"];

/// What a command names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NamedFiles {
    /// It looks like a file of the repository, and HEAD has none.
    pub absent: Vec<String>,
    /// Files of HEAD.
    pub there: Vec<String>,
}

impl NamedFiles {
    /// Looks at the words of a command.
    #[must_use]
    pub fn of(command: &str, head: &BTreeSet<String>) -> Self {
        let words = words(command);
        let moves = words.iter().any(|word| ELSEWHERE.contains(&word.as_str()));
        let mut named = Self::default();
        for path in words.iter().filter_map(|word| path(word)).map(str::to_owned) {
            let below = |dir: &str| head.iter().any(|file| is_below(file, dir));
            let is_it = |file: &String| *file == path || (moves && file.ends_with(&format!("/{path}")));
            let script = path.rsplit_once('.').is_some_and(|(_, ending)| SCRIPTS.contains(&ending));
            // A first directory that HEAD has not is one that a build makes, or no directory at all.
            let file = script || path.split_once('/').is_some_and(|(top, _)| below(top));
            if head.iter().any(is_it) {
                named.there.push(path);
            } else if file && !moves && !below(&path) {
                named.absent.push(path);
            }
        }
        named
    }

    /// Refuses a command that needs a file which anybody could write later.
    ///
    /// # Errors
    /// There is such a file (3).
    pub fn refuse_absent(&self, hint: &'static str) -> Result<(), ScaffoldError> {
        let Some(path) = self.absent.first() else { return Ok(()) };
        let message = format!("the command names `{}`, which is not in HEAD", term::line(path, 200));
        Err(ScaffoldError::refused(exit::INVALID, message, hint))
    }
}

/// The files of HEAD; none where there is no commit.
///
/// # Errors
/// [`GitError`] when the commit cannot be read.
pub fn files_of_head(repo: Option<&PeerRepo>) -> Result<BTreeSet<String>, GitError> {
    let Some(repo) = repo else { return Ok(BTreeSet::new()) };
    let facts = repo.facts();
    let Ok(head) = facts.head() else { return Ok(BTreeSet::new()) };
    Ok(facts.list_tree(&head.commit)?.into_iter().map(|item| item.path).collect())
}

fn is_below(file: &str, dir: &str) -> bool {
    file.strip_prefix(dir).is_some_and(|rest| rest.starts_with('/'))
}

/// The words of a command as the shell splits them, and those of a command after `-c`.
fn words(command: &str) -> Vec<String> {
    let (mut split, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            None if c.is_whitespace() || "`;&|()<>".contains(c) => split.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    split.push(word);
    let mut all: Vec<String> = Vec::new();
    for word in split.into_iter().filter(|word| !word.is_empty()) {
        let inner = all.last().is_some_and(|before| before.starts_with('-') && before.ends_with('c'));
        if inner && word.contains(char::is_whitespace) {
            all.extend(words(&word));
        } else {
            all.push(word);
        }
    }
    all
}

/// The path that a word may be, from the top of the repository.
fn path(word: &str) -> Option<&str> {
    // One test of a file: `tests/test_shop.py::test_greets`.
    let word = word.split("::").next()?;
    let path = word.strip_prefix("./").unwrap_or(word);
    let plain = path.chars().all(|c| c.is_alphanumeric() || "._/+-@".contains(c));
    let relative = !path.starts_with(['/', '-', '@']) && !path.ends_with('/');
    (plain && relative && !path.is_empty() && !path.contains("..") && !path.contains("//")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_that_a_command_names_are_found() {
        let head =
            ["tests/accept.sh", "tests/unit/a.py", "shop/hello.py", "sub/run.sh", "Makefile", "gradlew"];
        let head: BTreeSet<String> = head.map(str::to_owned).into();
        for (command, absent, there) in [
            ("sh tests/accept.sh", &[][..], &["tests/accept.sh"][..]),
            ("sh ./tests/accept.sh", &[], &["tests/accept.sh"]),
            ("sh tests/none.sh", &["tests/none.sh"], &[]),
            ("sh other/none.sh", &["other/none.sh"], &[]),
            ("sh none.sh", &["none.sh"], &[]),
            ("tests/none --all", &["tests/none"], &[]),
            ("sh -ec 'sh tests/none.sh; true'", &["tests/none.sh"], &[]),
            ("sh \"tests/none.sh\"&&true", &["tests/none.sh"], &[]),
            ("X=1 pytest -q tests/none.py::test_a", &["tests/none.py"], &[]),
            ("./gradlew check", &[], &["gradlew"]),
            ("pytest tests/unit tests/", &[], &[]),
            ("go test ./... ./tests/...", &[], &[]),
            ("cargo build && target/debug/shop --csv", &[], &[]),
            ("curl -f http://localhost/a.js | sed s/a/b/", &[], &[]),
            ("grep -q 'usage: tests/none.sh FILE' shop/hello.py", &[], &["shop/hello.py"]),
            ("cd sub && sh run.sh && sh built.sh", &[], &["run.sh"]),
            ("sh run.sh", &["run.sh"], &[]),
            ("sh /tmp/none.sh ../none.sh $HOME/none.sh", &[], &[]),
            ("make test", &[], &[]),
        ] {
            let named = NamedFiles::of(command, &head);
            assert_eq!(
                (&named.absent[..], &named.there[..]),
                (&strings(absent)[..], &strings(there)[..]),
                "{command}"
            );
        }
    }

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}
