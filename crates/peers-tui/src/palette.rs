//! The command palette: everything that can be done here, found by a few letters of its name.

use tui_input::Input;

use crate::keys::{Binding, Spot, TABLE};

/// The command palette.
#[derive(Debug, Default)]
pub(crate) struct Palette {
    pub(crate) input: Input,
    pub(crate) at: usize,
}

impl Palette {
    /// What fits what was typed, the best first.
    pub(crate) fn found(&self, spot: Spot) -> Vec<&'static Binding> {
        let wanted = self.input.value().to_lowercase();
        let mut found: Vec<(usize, &Binding)> = TABLE
            .iter()
            .filter(|binding| binding.counts(spot))
            .filter_map(|binding| Some((spread(&wanted, binding.about)?, binding)))
            .collect();
        found.sort_by_key(|(spread, _)| *spread);
        found.into_iter().map(|(_, binding)| binding).collect()
    }
}

/// How far the letters lie apart that were typed; nothing where they are not all there in that order.
fn spread(wanted: &str, text: &str) -> Option<usize> {
    let text = text.to_lowercase();
    let mut from = 0;
    let (mut first, mut last) = (None, 0);
    for c in wanted.chars().filter(|c| !c.is_whitespace()) {
        let at = from + text.get(from..)?.find(c)?;
        first.get_or_insert(at);
        last = at;
        from = at + c.len_utf8();
    }
    Some(first.map_or(0, |first| (last - first) * 4 + first))
}
