//! A step: its name and its arguments.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::{
    BugReport, BugResolve, Commit, Drip, EditGoals, Emit, Flood, ForgeNote, Fork, GitPart, Hang, Message,
    MoveGit, ReadPrompt, Review, Rewrite, Shell, Skeptic, SwitchBranch, When, WriteFile,
};
use crate::args::{TextOr, Texts, Wait};

/// One thing to do.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    missing_docs,
    reason = "each step is described by the type of its arguments and in docs/formats/fake-peer.md"
)]
pub enum Step {
    Say(String),
    Shell(Shell),
    Write(WriteFile),
    Remove(String),
    Commit(Commit),
    Handoff(Commit),
    Sleep(Duration),
    Flood(Flood),
    Drip(Drip),
    Fork(Fork),
    Emit(Emit),
    Exit(u8),
    IgnoreTerm,
    Silent,
    Crash(String),
    Hang(Hang),
    ReadPrompt(ReadPrompt),
    When(Box<When>),
    Rewrite(Rewrite),
    SwitchBranch(SwitchBranch),
    EditGoals(EditGoals),
    DeleteGit,
    MoveGit(MoveGit),
    CorruptGit(GitPart),
    SymlinkPeers(Option<String>),
    ForgeNote(ForgeNote),
    Review(Review),
    BugReport(BugReport),
    BugResolve(BugResolve),
    Skeptic(Skeptic),
    Message(Message),
    Git(Vec<String>),
}

pub(crate) const STEPS: &[&str] = &[
    "say",
    "shell",
    "write",
    "remove",
    "commit",
    "handoff",
    "sleep",
    "flood",
    "drip",
    "fork",
    "emit",
    "exit",
    "ignore_term",
    "silent",
    "crash",
    "hang",
    "read_prompt",
    "when",
    "rewrite",
    "switch_branch",
    "edit_goals",
    "delete_git",
    "move_git",
    "corrupt_git",
    "symlink_peers",
    "forge_note",
    "review",
    "bug_report",
    "bug_resolve",
    "skeptic",
    "message",
    "git",
];

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct StepVisitor;
        impl<'de> Visitor<'de> for StepVisitor {
            type Value = Step;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step: its name, or a mapping from its name to its arguments")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Step, E> {
                bare(name).map_err(|known| {
                    if known {
                        E::custom(format!("step `{name}` needs arguments"))
                    } else {
                        E::unknown_variant(name, STEPS)
                    }
                })
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Step, A::Error> {
                let Some(name) = map.next_key::<String>()? else {
                    return Err(A::Error::custom("an empty mapping is no step"));
                };
                let step = with_arguments(&name, &mut map)?;
                match map.next_key::<String>()? {
                    None => Ok(step),
                    Some(more) => Err(A::Error::custom(format!(
                        "`{name}` and `{more}` stand in one step; write each as its own list item"
                    ))),
                }
            }
        }
        deserializer.deserialize_any(StepVisitor)
    }
}

/// A step without arguments. The error tells whether the name is a step at all.
fn bare(name: &str) -> Result<Step, bool> {
    Ok(match name {
        "ignore_term" => Step::IgnoreTerm,
        "silent" => Step::Silent,
        "delete_git" => Step::DeleteGit,
        "symlink_peers" => Step::SymlinkPeers(None),
        "crash" => Step::Crash("KILL".to_owned()),
        "hang" => Step::Hang(Hang::default()),
        "read_prompt" => Step::ReadPrompt(ReadPrompt::default()),
        "handoff" => Step::Handoff(Commit::default()),
        "commit" => Step::Commit(Commit::default()),
        "edit_goals" => Step::EditGoals(EditGoals::default()),
        "move_git" => Step::MoveGit(MoveGit::default()),
        "forge_note" => Step::ForgeNote(ForgeNote::default()),
        "skeptic" => Step::Skeptic(Skeptic::default()),
        _ => return Err(STEPS.contains(&name)),
    })
}

fn with_arguments<'de, A: MapAccess<'de>>(name: &str, map: &mut A) -> Result<Step, A::Error> {
    Ok(match name {
        "say" => Step::Say(map.next_value()?),
        "shell" => Step::Shell(map.next_value::<TextOr<Shell>>()?.0),
        "write" => Step::Write(map.next_value()?),
        "remove" => Step::Remove(map.next_value()?),
        "commit" => Step::Commit(map.next_value::<TextOr<Commit>>()?.0),
        "handoff" => Step::Handoff(map.next_value::<TextOr<Commit>>()?.0),
        "sleep" => Step::Sleep(map.next_value::<TextOr<Wait>>()?.0.0),
        "flood" => Step::Flood(map.next_value()?),
        "drip" => Step::Drip(map.next_value()?),
        "fork" => Step::Fork(map.next_value()?),
        "emit" => Step::Emit(map.next_value()?),
        "exit" => Step::Exit(map.next_value()?),
        "crash" => Step::Crash(map.next_value()?),
        "hang" => Step::Hang(map.next_value()?),
        "read_prompt" => Step::ReadPrompt(map.next_value()?),
        "when" => Step::When(Box::new(map.next_value()?)),
        "rewrite" => Step::Rewrite(map.next_value::<TextOr<Rewrite>>()?.0),
        "switch_branch" => Step::SwitchBranch(map.next_value::<TextOr<SwitchBranch>>()?.0),
        "edit_goals" => Step::EditGoals(map.next_value()?),
        "move_git" => Step::MoveGit(map.next_value()?),
        "corrupt_git" => Step::CorruptGit(map.next_value()?),
        "symlink_peers" => Step::SymlinkPeers(Some(map.next_value()?)),
        "forge_note" => Step::ForgeNote(map.next_value::<TextOr<ForgeNote>>()?.0),
        "review" => Step::Review(map.next_value()?),
        "bug_report" => Step::BugReport(map.next_value()?),
        "bug_resolve" => Step::BugResolve(map.next_value()?),
        "skeptic" => Step::Skeptic(map.next_value::<TextOr<Skeptic>>()?.0),
        "message" => Step::Message(map.next_value()?),
        "git" => Step::Git(map.next_value::<Texts>()?.0),
        "ignore_term" | "silent" | "delete_git" => {
            return Err(A::Error::custom(format!("step `{name}` takes no arguments")));
        }
        _ => return Err(A::Error::unknown_variant(name, STEPS)),
    })
}
