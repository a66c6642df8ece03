//! Notes about steps: out of the drop box of whoever has the turn, sealed in the trusted store.
//!
//! The name of the only file that is looked at follows from the turn. It is removed before the turn, so that
//! nobody but this turn can have written it, and what lies anywhere else is never read.

use peers_core::course::Course;
use peers_model::step::{NotePart, SealedNote, StepWork};
use peers_model::{CommitId, PeerName, TickNo, limits};
use peers_store::{Area, Disk, DiskError, layout};
use peers_sys::digest::sha256_hex;

/// What a harvest found in the drop box.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// What was sealed.
    pub(crate) note: Option<SealedNote>,
    /// The file that it came from.
    pub(crate) taken: Option<String>,
    /// For the next prompt.
    pub(crate) warning: Option<String>,
}

fn dropped(peer: &PeerName, work: &StepWork) -> Option<(NotePart, String)> {
    let part = work.role.part()?;
    let StepWork { step, .. } = work;
    Some((part, format!("{}/{peer}/notes/{step}/{}.md", layout::peers::INBOX, part.word())))
}

/// Removes what lies where the notes of a turn will.
pub(crate) fn clear<D: Disk>(disk: &mut D, peer: &PeerName, work: &StepWork) {
    let Some((_, path)) = dropped(peer, work) else { return };
    if disk.len(Area::Peers, &path).is_ok_and(|found| found.is_none()) {
        return;
    }
    if let Err(error) = disk.remove(Area::Peers, &path) {
        tracing::warn!(%error, "old notes stay in a drop box");
    }
}

/// Seals what the turn handed in. `head` is where it left the branch.
pub(crate) fn collect<D: Disk>(
    disk: &mut D,
    (peer, tick): (&PeerName, TickNo),
    work: &StepWork,
    head: &CommitId,
) -> Collected {
    let Some((part, path)) = dropped(peer, work) else { return Collected::default() };
    let warn = |why: &str| Collected {
        warning: Some(format!("the notes on {} were not taken: {why}", work.step)),
        ..Collected::default()
    };
    let bytes = match disk.read(Area::Peers, &path, limits::MESSAGE) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Collected::default(),
        Err(error) => return warn(&error.detail),
    };
    let Ok(text) = String::from_utf8(bytes) else { return warn("they are not UTF-8") };
    let words = u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX);
    if words == 0 {
        return warn("there is no text in them");
    }
    let StepWork { step, base, head: reviewed, .. } = work;
    let head = reviewed.as_ref().unwrap_or(head);
    let sealed = format!(
        "---\nstep: {step}\nbase: {base}\nhead: {head}\npeer: {peer}\nrole: {}\ntick: {tick}\n---\n\n{text}",
        part.word()
    );
    let file = format!("{step}/{:05}-{peer}-{}.md", tick.0, part.word());
    let stored = format!("{}/{file}", layout::store::NOTES);
    if let Err(error) = disk.publish(Area::Store, &stored, sealed.as_bytes(), true) {
        return warn(&error.detail);
    }
    let note = SealedNote {
        step: *step,
        part,
        base: base.clone(),
        head: head.clone(),
        words,
        sha256: sha256_hex(sealed.as_bytes()),
        file,
    };
    Collected { note: Some(note), taken: Some(path), warning: None }
}

/// All sealed notes about the step at hand, its author's first.
///
/// # Errors
/// [`Unsealed`] where a file of the store is not what was sealed, or cannot be read.
pub fn sealed<D: Disk>(disk: &mut D, course: &Course) -> Result<Vec<(PeerName, String)>, Unsealed> {
    let Some(current) = &course.book.current else { return Ok(Vec::new()) };
    let author = current.handed_in.iter().map(|note| (&current.implementer, note));
    let readers = current.reviews.iter().map(|(by, note)| (by, note));
    let mut all = Vec::new();
    for (peer, note) in author.chain(readers) {
        let path = format!("{}/{}", layout::store::NOTES, note.file);
        let bytes = disk.read(Area::Store, &path, 2 * limits::MESSAGE)?;
        let Some(bytes) = bytes.filter(|bytes| sha256_hex(bytes) == note.sha256) else {
            return Err(Unsealed::Changed(path));
        };
        all.push((peer.clone(), String::from_utf8_lossy(&bytes).into_owned()));
    }
    Ok(all)
}

/// Why sealed notes cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Unsealed {
    /// This file is not what was sealed, or gone.
    #[error("{0} in the trusted store is not what was sealed")]
    Changed(String),
    /// It cannot be read.
    #[error("sealed notes cannot be read")]
    Disk(#[source] DiskError),
}

impl From<DiskError> for Unsealed {
    fn from(error: DiskError) -> Self {
        Self::Disk(error)
    }
}
