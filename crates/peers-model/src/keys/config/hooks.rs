//! The keys below `hooks`.

use super::{ARGUMENT, POSITIVE, optional};
use crate::keys::{Key, Shape, Table};

/// `hooks`.
pub(super) const HOOKS: Table = Table {
    keys: &[
        hook("pre_turn", "Run before a peer has its turn, which waits for them."),
        hook("post_turn", "Run after a turn was recorded."),
        hook("pre_gate", "Run before gates, which wait for them."),
        hook("post_gate", "Run after gates have answered."),
        hook("converge", "Run after the loop stopped as `complete`."),
        hook("halt", "Run after it stopped for any other reason."),
    ],
    gone: &[],
    either: &[],
};

const fn hook(name: &'static str, about: &'static str) -> Key {
    Key { default: Some("[]"), ..optional(name, Shape::List { of: &COMMAND, least: 0, most: 20 }, about) }
}

const COMMAND: Shape = Shape::Table(&Table {
    keys: &[
        Key {
            required: true,
            ..optional(
                "cmd",
                Shape::List { of: &ARGUMENT, least: 1, most: usize::MAX },
                "The program and its arguments; no shell is involved.",
            )
        },
        Key { default: Some("30"), ..optional("timeout_s", POSITIVE, "Seconds before it is ended.") },
    ],
    gone: &[],
    either: &[],
});
