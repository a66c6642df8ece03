//! One loop as a row, read again and again: what did not change is not read again.

use std::path::{Path, PathBuf};

use peers_git::{PeerRepo, PlainHead};
use peers_model::{ProjectId, Timestamp, limits};
use peers_place::{Homes, PEERS_DIR, Place};
use peers_store::bugs;
use peers_store::{Area, Disk as _, Fingerprint, FsDisk, layout};
use peers_sys::clock;
use peers_sys::dir::{FileId, SafeDir};
use peers_sys::env::Env;
use peers_view::{Adrift, Asked, HeadFact, Listed, LoopReader, LoopRow, Sourced, Spelling, Unknown};

use crate::cx::look;
use crate::error::chain;

/// One loop that is watched.
#[derive(Debug)]
pub struct Watched {
    path: PathBuf,
    /// The project that is known to lie there.
    project: Option<ProjectId>,
    place: Option<(Place, FsDisk)>,
    /// What lay there when it was opened.
    lay: Lay,
    reader: LoopReader,
    head: HeadCache,
    /// The counts of bugs as last read, with how their file looked then.
    counted: Option<(Option<Fingerprint>, Sourced<bugs::Counted>)>,
    /// Where the newest run worked, as the last row had it.
    work_dir: Option<String>,
}

impl Watched {
    /// The loop of the repository at `path`, of which may be known which project it is. Nothing is looked at yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, project: Option<ProjectId>) -> Self {
        Self {
            path: path.into(),
            project,
            place: None,
            lay: Lay::default(),
            reader: LoopReader::default(),
            head: HeadCache::default(),
            counted: None,
            work_dir: None,
        }
    }

    /// How the files look of which one changes when anything begins: a loop or another command that takes the
    /// lock, a record of the journal, the operator's files. `None` before the first row.
    pub fn marks(&mut self) -> Option<Marks> {
        let segment = self.reader.segment();
        let (place, disk) = self.place.as_mut()?;
        // Directories are held open; what was put in their place is found by name alone.
        if Lay::of(place) != self.lay {
            return None;
        }
        let mut print = |area, path: &str| disk.fingerprint(area, path).ok().flatten();
        let lock = print(Area::Store, layout::store::RUN_LOCK)?;
        let rest = [
            segment.and_then(|segment| print(Area::Store, &segment)),
            print(Area::Store, layout::store::RUNS),
            print(Area::Peers, layout::peers::GOALS),
            print(Area::Peers, layout::peers::CONFIG),
        ];
        Some(Marks { lock, rest })
    }

    /// Its row as it is now. Nothing here fails: what cannot be read is not known.
    pub fn row(&mut self, env: &Env, homes: Option<&Homes>, listed: Listed, spelling: Spelling) -> LoopRow {
        let now = clock::now();
        if self.place.as_ref().is_some_and(|(place, _)| Lay::of(place) != self.lay) {
            let path = std::mem::take(&mut self.path);
            *self = Self::new(path, self.project.take());
        }
        if self.place.is_none() {
            self.place = match open(&self.path, self.project.as_ref(), env, homes) {
                Ok((found, disk)) => {
                    // What was exchanged meanwhile is opened by the next look.
                    self.lay = Some(Lay::of(&found)).filter(|lay| lay.is(&disk)).unwrap_or_default();
                    Some((found, disk))
                }
                Err(why) => return unknown(now, listed, spelling, why),
            };
        }
        let Some((place, disk)) = &mut self.place else {
            return unknown(now, listed, spelling, String::new());
        };
        let (lock, gates_since) = look(place);
        let mut asked = Asked::of_row(now, lock, listed, spelling);
        asked.boot_id = clock::boot_id().map(str::to_owned);
        asked.gates_since = gates_since;
        asked.foreign_lock = place.foreign_lock().unwrap_or(false);
        if asked.lock == peers_view::Lock::Free {
            let found = peers_run::boot::quick_refusals(place, env, disk);
            asked.refusals = found.into_iter().map(crate::cx::refusal).collect();
            let lost = peers_run::boot::gone::lost(place, disk);
            asked.lost = lost.map(|lost| (lost.message, lost.hint.unwrap_or_default()));
        }
        (asked.free_bytes, asked.full) = free(place);
        loop {
            let work_dir =
                self.work_dir.as_deref().map_or_else(|| place.work_dir().to_owned(), PathBuf::from);
            asked.gone = peers_place::is_gone(&work_dir);
            let looked_in = if asked.gone { place.work_dir() } else { work_dir.as_path() };
            let counted = counted(&mut self.counted, disk);
            asked.head = self.head.look(looked_in, place.work_dir(), counted.value());
            asked.bugs = counts(counted, &asked.head);
            asked.plan = counted.value().and_then(|counted| counted.plan);
            let row = self.reader.row(disk, &asked);
            let another = row.workdir != self.work_dir;
            self.work_dir.clone_from(&row.workdir);
            if !(another && row.workdir.as_deref().is_some_and(|dir| Path::new(dir) != work_dir)) {
                return row;
            }
            // Another directory was looked at.
        }
    }
}

fn open(
    path: &Path,
    project: Option<&ProjectId>,
    env: &Env,
    homes: Option<&Homes>,
) -> Result<(Place, FsDisk), String> {
    let place = Place::locate_below(path, env, homes)
        .and_then(|place| place.expect(project))
        .map_err(|error| chain(&error))?;
    let disk = place.open_view_disk().map_err(|error| chain(&error))?;
    Ok((place, disk))
}

/// What lies where a place was opened: its work tree, `.peers`, and the trusted store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Lay([Option<FileId>; 3]);

impl Lay {
    fn of(place: &Place) -> Self {
        let work = place.work_dir();
        Self([work, &work.join(PEERS_DIR), place.store_dir()].map(SafeDir::id_at))
    }

    /// Whether these are the directories that are held open.
    fn is(&self, disk: &FsDisk) -> bool {
        let Self([_, peers, store]) = self;
        let open = |area| disk.dir(area).map(SafeDir::identity);
        (open(Area::Peers), open(Area::Store)) == (*peers, *store)
    }
}

/// Free bytes where the loop works or where its store lies, whichever is less; and where that is, unless it works
/// there.
fn free(place: &Place) -> (Option<u64>, Option<String>) {
    let work = SafeDir::open_shared(place.work_dir()).ok();
    let store = place.view_store().ok().flatten();
    let device = |dir: &Option<SafeDir>| dir.as_ref().map(|dir| dir.identity().dev);
    let bytes = |dir: &Option<SafeDir>| dir.as_ref().and_then(|dir| dir.free_bytes().ok());
    let here = bytes(&work);
    if device(&work) == device(&store) {
        return (here, None);
    }
    match bytes(&store) {
        Some(there) if here.is_none_or(|here| there < here) => {
            (Some(there), Some(place.store_dir().to_string_lossy().into_owned()))
        }
        _ => (here, None),
    }
}

/// The row of a project that cannot be looked at.
fn unknown(now: Timestamp, mut listed: Listed, spelling: Spelling, why: String) -> LoopRow {
    if let Some(Adrift { pid, run_id }) = listed.adrift.clone() {
        let lock = peers_view::Lock::Held { pid, run_id };
        let mut asked = Asked::of_row(now, lock, listed, spelling);
        asked.gone = true;
        return LoopRow::unseen(&asked);
    }
    if listed.bare {
        return LoopRow::unseen(&Asked::of_row(now, peers_view::Lock::Free, listed, spelling));
    }
    let known = listed.unknown.take();
    listed.unknown = Some(known.unwrap_or(Unknown { since: None, outcome: None, why, nobody: false }));
    let asked =
        Asked::of_row(now, peers_view::Lock::Unreadable("it was not looked at".to_owned()), listed, spelling);
    LoopRow::unseen(&asked)
}

/// What the loop saw last, as its file says it.
fn counted<'k>(
    kept: &'k mut Option<(Option<Fingerprint>, Sourced<bugs::Counted>)>,
    disk: &mut FsDisk,
) -> &'k Sourced<bugs::Counted> {
    let print = disk.fingerprint(Area::Store, layout::store::BUGS).ok().flatten();
    match kept {
        Some((known, _)) if *known == print => {}
        _ => {
            let read = Sourced::from_read(bugs::read(disk).map_err(|error| chain(&error)));
            *kept = Some((print, read));
        }
    }
    kept.as_ref().map_or(&Sourced::Missing, |(_, read)| read)
}

/// How many bugs it counted, and whether that still is about this HEAD.
fn counts(read: &Sourced<bugs::Counted>, head: &Sourced<HeadFact>) -> Sourced<peers_core::bugs::Counts> {
    match (read, head.value()) {
        (Sourced::Fresh(counted), Some(head)) if counted.head != head.sha => Sourced::Stale {
            value: counted.counts,
            why: "counted at the end of the last turn; HEAD has moved since".to_owned(),
        },
        _ => read.as_ref().map(|counted| counted.counts),
    }
}

/// How files look that change when anything begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    lock: Fingerprint,
    rest: [Option<Fingerprint>; 4],
}

/// HEAD, looked at again when what says where it is has changed.
#[derive(Debug, Default)]
struct HeadCache {
    known: Option<(PathBuf, PlainHead, Sourced<HeadFact>)>,
}

impl HeadCache {
    /// `counted` is what the loop saw at HEAD when it last looked: where HEAD is there still, git is not asked.
    fn look(&mut self, dir: &Path, main: &Path, counted: Option<&bugs::Counted>) -> Sourced<HeadFact> {
        let marks = PlainHead::of(dir);
        let commit = marks.as_ref().and_then(|marks| marks.commit.as_ref());
        if let Some(counted) = counted.filter(|counted| Some(&counted.head) == commit)
            && let Some(subject) = &counted.subject
        {
            return Sourced::Fresh(HeadFact {
                sha: counted.head.clone(),
                subject: subject.clone(),
                at: counted.since,
            });
        }
        if let (Some((known_dir, known, fact)), Some(marks)) = (&self.known, &marks)
            && known_dir == dir
            && known == marks
        {
            return fact.clone();
        }
        let fact = read_head(dir, main);
        self.known = marks.map(|marks| (dir.to_owned(), marks, fact.clone()));
        fact
    }
}

fn read_head(dir: &Path, main: &Path) -> Sourced<HeadFact> {
    let repo = match (dir == main, PeerRepo::open(main)) {
        // A worktree of the run's own: agents write there, so it must lead to this repository.
        (false, Ok(main)) => PeerRepo::open_known(dir, main.common_dir()),
        (_, main) => main,
    };
    let whole = repo.and_then(|repo| repo.check_content().map(|()| repo));
    let fact = whole.map_err(|error| chain(&error)).and_then(|repo| {
        let facts = repo.facts();
        let head = facts.head().map_err(|error| chain(&error))?;
        let commit = facts.commit(&head.commit).map_err(|error| chain(&error))?;
        let subject = commit.message.lines().next().unwrap_or_default();
        let subject = subject.chars().take(usize::try_from(limits::KIB).unwrap_or(1024)).collect();
        Ok(HeadFact { sha: head.commit, subject, at: commit.time })
    });
    fact.map_or_else(Sourced::Unreadable, Sourced::Fresh)
}
