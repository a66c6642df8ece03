//! Source code, read only: one set of language packs on tree-sitter for everything that reads code.
//!
//! A file is parsed once ([`Source::parse`]) and asked for what a caller needs: its symbols, its tests, its comments.
//! Nothing here opens a file or starts a process: texts come in, facts go out, so that a caller may read the committed
//! tree and nothing else. What cannot be read is an error with a line, never an empty answer.

mod aside;
mod codemap;
mod facts;
mod gaps;
mod language;
mod layout;
mod mutate;
mod packs;
mod recon;
mod setting;
mod source;
mod symbol;
mod testing;
mod weaken;

pub use codemap::{CodeMap, DIGEST_BYTES, Entry, Listed, Outlines, codemap};
pub use facts::{Comment, Idle, Import, Unfinished};
pub use language::{Language, UnknownLanguage};
pub use layout::{is_source, is_test, module_name};
pub use mutate::{Mutation, MutationKind};
pub use recon::{DOCS, RECON_BYTES, TreeFile, recon};
pub use setting::Setting;
pub use source::{MAX_BYTES, Source, Unreadable};
pub use symbol::{Kind, Symbol};
pub use testing::{Skip, SkipKind, Test};
pub use weaken::{ChangedFile, Inline, Side, Weaker, is_measured, weaker};
