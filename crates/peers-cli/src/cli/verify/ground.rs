//! Where `verify` works: with the trusted store, or by a digest that somebody names.

use peers_console::cx::{self, Cx};
use peers_console::error::CommandError;
use peers_model::{exit, limits};
use peers_place::{PEERS_DIR, Place, PlaceError};
use peers_run::boot::{self, Loaded};
use peers_store::layout::peers;
use peers_store::{Area, Disk, FsDisk, accept};
use peers_sys::dir::{Kind, SafeDir};
use peers_sys::term;

/// Hex digits of a SHA-256.
const DIGITS: usize = 64;

/// Where `verify` works.
pub(super) struct Ground {
    pub(super) place: Place,
    pub(super) loaded: Loaded,
    /// The texts of `goals.yaml` and `config.yaml`, for a look at their lines.
    pub(super) texts: [String; 2],
}

/// A directory that goes with its owner.
struct Scratch {
    parent: SafeDir,
    name: String,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It lies in the cache, which may be emptied at any time.
        let _removed = self.parent.remove_tree(&self.name);
    }
}

impl Ground {
    /// Loads what is to be judged. Makes nothing that stays.
    pub(super) fn open(cx: &Cx, digest: Option<&str>) -> Result<Self, CommandError> {
        if let Some(digest) = digest
            && !(digest.len() == DIGITS && digest.bytes().all(|b| b.is_ascii_hexdigit()))
        {
            return Err(CommandError::usage(format!(
                "`--accept-digest` takes the 64 hex digits that `peers info` prints, not `{}`",
                term::line(digest, 80)
            )));
        }
        let place = cx.place()?;
        if place.open_peers()?.is_none() && place.open_store()?.is_some() {
            return Err(boot::BootError::from(boot::missing(&place)).into());
        }
        cx::refuse_link(&place)?;
        let (mut disk, nothing, missing) = match place.open_view_disk() {
            Ok(disk) => (disk, None, None),
            Err(error @ PlaceError::NoStore { .. }) => {
                let (disk, nothing) = without_store(&place)?;
                (disk, Some(nothing), Some(error))
            }
            Err(error) => return Err(error.into()),
        };
        refuse_link(&place)?;
        let mut loaded = boot::load(&mut disk)?;
        match (digest, missing) {
            (Some(digest), _) => {
                // What the store says comes first.
                if nothing.is_some() || loaded.changed().is_none() {
                    loaded.named_as_accepted(digest).map_err(boot::BootError::from)?;
                }
            }
            (None, Some(error)) => {
                let found = accept::together(&loaded.digests);
                let error = CommandError::from(error);
                return Err(error.hint(format!(
                    "in CI there is none: `peers verify --accept-digest SHA256` names what was accepted; goals and config here have the digest {found}, which is right if `peers info` prints it where they were accepted"
                )));
            }
            (None, None) => {}
        }
        let mut text = |file| -> Result<String, CommandError> {
            let bytes = disk.read(Area::Peers, file, limits::CONFIG)?.unwrap_or_default();
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let texts = [text(peers::GOALS)?, text(peers::CONFIG)?];
        Ok(Self { place, loaded, texts })
    }

    /// Writes `.peers/VERIFY.md`.
    pub(super) fn write_report(&self, text: &str) -> Result<(), CommandError> {
        let written = || -> Result<(), CommandError> {
            let dir = self.place.open_peers()?;
            let mut disk = FsDisk::new(self.place.open_work()?, dir);
            Ok(disk.publish(Area::Peers, peers::VERIFY, text.as_bytes(), false)?)
        };
        written().map_err(way_out)
    }
}

/// The verdicts do not need the file.
fn way_out(error: CommandError) -> CommandError {
    error.hint("`--no-write` leaves `.peers/VERIFY.md` out")
}

/// A disk whose store is empty: an empty directory in the cache, which goes with what is returned.
fn without_store(place: &Place) -> Result<(FsDisk, Scratch), CommandError> {
    let parent = SafeDir::create_root(place.cache_dir())?;
    let random = peers_sys::rand::hex::<8>()
        .map_err(|error| CommandError::new(exit::BUG, format!("random bytes: {error}")))?;
    let name = format!("nostore-{random}");
    let dir = parent.create_subdir(&name)?;
    let scratch = Scratch { parent, name };
    let peers = place.open_work()?.subdir(PEERS_DIR)?;
    Ok((FsDisk::new(dir, Some(peers)), scratch))
}

/// Removes `.peers/VERIFY.md`: whatever happens from now on, nobody takes an older report for this one.
pub(super) fn clear_report(place: &Place) -> Result<(), CommandError> {
    // Where there is no such directory, or no safe one, nothing runs.
    let Ok(Some(dir)) = place.open_peers() else { return Ok(()) };
    match dir.stat(peers::VERIFY)?.map(|stat| stat.kind) {
        Some(Kind::File) => {
            let _was_there = dir.remove_file(peers::VERIFY).map_err(|error| way_out(error.into()))?;
            Ok(())
        }
        Some(Kind::Symlink) => {
            let _was_there = dir.remove_file(peers::VERIFY)?;
            Err(CommandError::new(exit::REFUSED, ".peers/VERIFY.md was a symbolic link; it was removed")
                .hint("peers did not create it: find out who did, and start again"))
        }
        Some(Kind::Dir | Kind::Special) | None => Ok(()),
    }
}

/// The report is written over what is there; a link there is somebody's doing.
fn refuse_link(place: &Place) -> Result<(), CommandError> {
    let dir = place.open_work()?.subdir(PEERS_DIR)?;
    if dir.stat(peers::VERIFY)?.is_some_and(|stat| stat.kind != Kind::File) {
        return Err(CommandError::new(exit::REFUSED, ".peers/VERIFY.md is not a regular file")
            .hint("peers did not create it: inspect it, delete it, and start again"));
    }
    Ok(())
}
