//! `peers replay N` and `peers-ctl replay`: one tick whole, and many one after the other.

mod range;
mod text;
mod tick;

pub use range::{
    RangeAsked, RangeItem, RangeTick, ReplayRange, replay_range, replay_range_json, replay_range_text,
};
pub use text::{replay_page, replay_text};
pub use tick::{Artifact, CommitRow, Replay, replay, replay_json};
