//! `HALTED.md`: what an operator finds in the morning when no peer was left.

use peers_core::state::PeerState;

use crate::advice::{self, Spelling};
use crate::asked::Asked;
use crate::closing;
use crate::live::{Stamp, live_words};
use crate::liveness::Lock;
use crate::loopview::{Core, LoopView};
use crate::markdown::{Document, code};
use crate::peers::PeerRow;
use crate::report::{headline, idle_words};
use crate::status::{dirty, last_turn, unseen};

/// Terminal cells of a text in it.
const TEXT: usize = 300;

/// Why the loop has no peer left and what to do about it, as Markdown. It says what `peers status` says, of what
/// an operator is needed for.
#[must_use]
pub fn halted_markdown(view: &LoopView) -> String {
    let mut doc = Document::title("No peer is left");
    let words = live_words(view, Stamp::Absolute).1;
    doc.paragraph(&format!("**{}**: {}", headline(view), code(&words, TEXT)));
    let Some(core) = view.core.value() else {
        doc.paragraph("The journal cannot be read: see `peers status`.");
        return doc.finish();
    };
    peers(&mut doc, view, core);
    doc.section("What was left uncommitted");
    match core.clean {
        _ if !core.dirty.is_empty() => doc.item(&code(&dirty(core), 2 * TEXT)),
        Some(true) => doc.item("nothing"),
        Some(false) => doc.item("the work tree has uncommitted changes"),
        None => doc.item(&format!("not known: {}", unseen(view))),
    }
    let notable = closing::notable(view);
    if !notable.is_empty() {
        doc.section("Look at this");
        for line in notable {
            doc.item(&code(&line, 2 * TEXT));
        }
    }
    doc.paragraph(
        "A new run (`peers run`) gives every peer another turn. `peers status` and `peers report` say more.",
    );
    doc.finish()
}

/// The peers that need their operator, and how to get each back.
fn peers(doc: &mut Document, view: &LoopView, core: &Core) {
    let ill = |peer: &&PeerRow| peer.state != PeerState::Healthy || peer.capped || peer.blocked_on.is_some();
    doc.section("The peers that need you");
    let spelling = Spelling::default();
    let asked = Asked::new(view.at, None, Lock::Free);
    let back = |peer| view.with_facts(&asked, &spelling, |facts| advice::back(peer, &facts));
    for peer in core.peers.iter().filter(ill) {
        let why = idle_words(peer, view.at);
        let why = if why.is_empty() { String::new() } else { format!(": {}", code(&why, TEXT)) };
        let last = code(&last_turn(peer, view.at), TEXT);
        doc.item(&format!("{} is {}{why}; {last}", peer.name, peer.state.word()));
        doc.item(&format!("next step for {}: {}", peer.name, back(peer)));
    }
}
