//! Everything asked of git, hardened: facts, diffs, worktrees, control git dir.
