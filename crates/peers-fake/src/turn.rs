//! Which turn is played. Each invocation is a new process, so the count lies in a file or comes from
//! the loop; it never lies in the repository, where it would make the work tree dirty.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use peers_sys::env::Env;
use thiserror::Error;

use crate::play::Options;
use crate::script::{After, Count, Script};

/// A turn that cannot be determined.
#[derive(Debug, Error)]
pub(crate) enum TurnError {
    #[error("read the state file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the state file {} does not hold a number", path.display())]
    NotANumber { path: PathBuf },
    #[error("write the state file {} (name another one with --state, or use `count: ticks`)", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "{} lies in the work tree, where the turn count would make the tree dirty: \
         pass --state FILE with a path outside, or use `count: ticks`",
        path.display()
    )]
    InWorkTree { path: PathBuf },
    #[error("`count: ticks` needs PEERS_ITERATION, a number from 1")]
    NoTick,
    #[error("turns are counted from 1")]
    Zero,
}

/// The number of this turn, from 1. A turn that counts is taken before it is played, so that a turn
/// that was killed is not played again.
pub(crate) fn number(options: &Options, script: &Script, peer: &str, counts: bool) -> Result<u64, TurnError> {
    if let Some(turn) = options.turn {
        return if turn == 0 { Err(TurnError::Zero) } else { Ok(turn) };
    }
    match script.count {
        Count::Ticks => tick(&options.env).ok_or(TurnError::NoTick),
        Count::Turns => next_in_file(&state_file(options, peer)?, counts),
    }
}

fn tick(env: &Env) -> Option<u64> {
    env.text("PEERS_ITERATION")?.trim().parse().ok().filter(|tick| *tick > 0)
}

/// `--state`, else `<script>.<peer>.state`.
fn state_file(options: &Options, peer: &str) -> Result<PathBuf, TurnError> {
    if let Some(path) = &options.state {
        return Ok(options.cwd.join(path));
    }
    let script = options.cwd.join(&options.script);
    let script = fs::canonicalize(&script).unwrap_or(script);
    let mut name = script.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.state", peer.replace('/', "_")));
    let path = script.with_file_name(name);
    let tree = fs::canonicalize(&options.cwd).unwrap_or_else(|_| options.cwd.clone());
    if path.starts_with(&tree) && tree.join(".git").exists() {
        return Err(TurnError::InWorkTree { path: script });
    }
    Ok(path)
}

fn next_in_file(path: &Path, take: bool) -> Result<u64, TurnError> {
    let played = match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map_err(|_| TurnError::NotANumber { path: path.to_owned() })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0u64,
        Err(source) => return Err(TurnError::Read { path: path.to_owned(), source }),
    };
    let turn = played.saturating_add(1);
    if !take {
        return Ok(turn);
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, format!("{turn}\n"))
        .and_then(|()| fs::rename(&new, path))
        .map_err(|source| TurnError::Write { path: path.to_owned(), source })?;
    Ok(turn)
}

/// What turn `number` means for a script with `turns` counted turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The counted turn with this index, from 0.
    Turn(usize),
    /// Nothing left to do.
    Idle,
    /// Fail.
    Fail,
}

pub(crate) fn choose(after: After, turns: usize, number: u64) -> Choice {
    let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
    if index < turns {
        return Choice::Turn(index);
    }
    match after {
        After::Fail => Choice::Fail,
        After::Repeat if turns > 0 => Choice::Turn(turns - 1),
        After::Cycle if turns > 0 => Choice::Turn(index % turns),
        After::Idle | After::Repeat | After::Cycle => Choice::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_last_turn_is_chosen_by_the_script() {
        let played = |after| (1..=5).map(|n| choose(after, 2, n)).collect::<Vec<_>>();
        let (first, second) = (Choice::Turn(0), Choice::Turn(1));
        assert_eq!(played(After::Idle), [first, second, Choice::Idle, Choice::Idle, Choice::Idle]);
        assert_eq!(played(After::Repeat), [first, second, second, second, second]);
        assert_eq!(played(After::Cycle), [first, second, first, second, first]);
        assert_eq!(played(After::Fail)[2], Choice::Fail);
        assert_eq!(choose(After::Cycle, 0, 1), Choice::Idle);
    }

    #[test]
    fn the_counter_survives_and_a_damaged_one_is_an_error() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("s.state");
        assert_eq!(next_in_file(&path, true).expect("first"), 1);
        assert_eq!(next_in_file(&path, false).expect("looked at"), 2);
        assert_eq!(next_in_file(&path, true).expect("second"), 2);
        fs::write(&path, "many\n").expect("write");
        assert!(matches!(next_in_file(&path, true), Err(TurnError::NotANumber { .. })));
    }
}
