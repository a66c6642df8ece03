//! The only YAML entry.
//!
//! Stricter than the parser behind it: booleans and numbers must be real YAML ones, not quoted text;
//! duplicate keys, tags, further documents and alias bombs are errors. An empty document is an
//! empty mapping. `null` and a missing value suit only an `Option`. Plain scalars of any look
//! (`yes`, `8080`) are accepted where a string is wanted, as they are written.

mod described;
mod error;
mod hint;
mod tree;
mod typed;
mod words;

use serde::de::DeserializeOwned;

pub use described::{Document, Findings, Mistake};
pub use error::YamlError;
pub use hint::closest;
pub use tree::At;

/// Nested mappings and sequences.
const DEPTH: usize = 32;
/// Anchors, and uses of them.
const ALIASES: usize = 500;
/// Nodes that aliases may stand for, all together.
const REPLAYED: usize = 10_000;

/// Reads `text`, which came from the file `name` (for messages).
///
/// Size caps are the caller's: see [`crate::SafeDir::read_text`].
///
/// # Errors
/// [`YamlError`] with the place in the text.
pub fn from_str<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, YamlError> {
    let document = Document::with(name, text, serde_saphyr::DuplicateKeyPolicy::Error)?;
    let root = document.root();
    T::deserialize(typed::Typed(&root)).map_err(|misfit| document.show(misfit.mistake))
}

fn is_empty(text: &str) -> bool {
    text.lines()
        .map(str::trim)
        .all(|line| line.is_empty() || line.starts_with('#') || line == "---" || line == "...")
}

// The budget grows with the text, not with what aliases make of it.
fn options(len: usize) -> serde_saphyr::Options {
    let nodes = len.saturating_add(1000);
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_documents: 2,
            max_events: nodes.saturating_mul(2).saturating_add(REPLAYED),
            max_nodes: nodes.saturating_add(REPLAYED),
            max_total_scalar_bytes: nodes.saturating_mul(2),
            max_anchors: ALIASES,
            max_aliases: ALIASES,
            max_recorded_anchor_events: REPLAYED,
            max_recorded_anchor_bytes: nodes,
            max_merge_keys: ALIASES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED,
            max_replay_stack_depth: 8,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests;
