//! How an operator arranged the screen: kept from one session to the next.

use serde::{Deserialize, Serialize};

use crate::filter::Sort;

/// What is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prefs {
    /// The filter of the Fleet screen.
    pub filter: String,
    /// By what it is sorted, one word.
    pub sort: Sort,
    /// The other way round.
    pub reversed: bool,
    /// The terminal's own selection works, and the mouse does nothing here.
    pub mouse_off: bool,
    /// A loop that comes to need somebody rings no bell.
    pub bell_off: bool,
}
