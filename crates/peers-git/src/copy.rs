//! Copying objects from one store to another, in process, with every hash and shape checked.

use std::collections::HashSet;

use git2::{ObjectType, Odb, OdbLookupFlags, Oid};

use crate::error::GitError;
use crate::objects::{self, Entry};

/// When to stop and let `git fetch` do it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

impl Limits {
    /// What is copied on our own behalf: bounded by sanity only.
    pub(crate) const OURS: Self = Self { objects: 2_000_000, bytes: 8 * 1024 * 1024 * 1024 };
}

/// How strictly the shape of objects is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As git's consistency check would: for objects that come from an agent.
    Strict,
    /// Parsable: for objects out of our own store.
    Loose,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copied {
    /// Everything is there; this many objects were written.
    Done(usize),
    /// The limits were reached; what was copied so far is complete in itself.
    TooMuch,
    /// An object is not of the usual shape; it was not copied.
    Odd(String),
}

enum Step {
    Visit(Oid, ObjectType),
    Write(Oid, ObjectType, Vec<u8>),
}

/// Copies everything that `roots` (commits) need and `dst` lacks. Children are written before their
/// parents, so an object in `dst` always has all that it names, wherever the copying stops.
///
/// Nothing in `boundary` is copied: the edge of a shallow history.
pub(crate) fn copy_closure(
    (src, dst): (&Odb<'_>, &Odb<'_>),
    roots: &[Oid],
    boundary: &[Oid],
    limits: Limits,
    shape: Shape,
) -> Result<Copied, GitError> {
    let mut seen: HashSet<Oid> = boundary.iter().copied().collect();
    let mut stack: Vec<Step> = roots.iter().map(|root| Step::Visit(*root, ObjectType::Commit)).collect();
    let (mut written, mut bytes) = (0_usize, 0_usize);
    while let Some(step) = stack.pop() {
        let (oid, kind) = match step {
            Step::Write(oid, kind, data) => {
                write(dst, oid, kind, &data)?;
                written += 1;
                continue;
            }
            Step::Visit(oid, kind) => (oid, kind),
        };
        if !seen.insert(oid) || has(dst, oid) {
            continue;
        }
        let what = || format!("{kind} {oid}");
        let (size, found) = src.read_header(oid).map_err(|source| objects::missing(what(), source))?;
        if found != kind {
            return Err(GitError::Corrupt { what: what(), detail: format!("it is a {found}") });
        }
        bytes = bytes.saturating_add(size);
        if written > limits.objects || seen.len() > limits.objects.saturating_mul(8) || bytes > limits.bytes {
            return Ok(Copied::TooMuch);
        }
        let data = src.read(oid).map_err(|source| objects::missing(what(), source))?.data().to_vec();
        match kind {
            ObjectType::Commit => {
                let Some(commit) = objects::parse_commit(&data) else { return Ok(Copied::Odd(what())) };
                stack.push(Step::Write(oid, kind, data));
                stack.push(Step::Visit(commit.tree, ObjectType::Tree));
                stack.extend(commit.parents.iter().map(|p| Step::Visit(*p, ObjectType::Commit)));
            }
            ObjectType::Tree => {
                if shape == Shape::Strict && !objects::is_plain_tree(&data) {
                    return Ok(Copied::Odd(what()));
                }
                let Some(entries) = objects::parse_tree(&data) else { return Ok(Copied::Odd(what())) };
                stack.push(Step::Write(oid, kind, data));
                let needed = entries.iter().filter_map(Entry::needed);
                stack.extend(needed.map(|(id, kind)| Step::Visit(id, kind)));
            }
            _ => {
                write(dst, oid, kind, &data)?;
                written += 1;
            }
        }
    }
    Ok(Copied::Done(written))
}

/// Present without looking for new packs again: a miss is the common case here.
pub(crate) fn has(odb: &Odb<'_>, oid: Oid) -> bool {
    odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH)
}

fn write(dst: &Odb<'_>, oid: Oid, kind: ObjectType, data: &[u8]) -> Result<(), GitError> {
    let what = || format!("{kind} {oid}");
    let got = dst.write(kind, data).map_err(|source| GitError::library(what(), source))?;
    if got != oid {
        return Err(GitError::Corrupt { what: what(), detail: format!("its content hashes to {got}") });
    }
    Ok(())
}
