//! What peers may read first: `.peers/recon.md`, `.peers/CODEMAP.yaml` and `.peers/codemap.md`, made of a commit.
//!
//! Grammars in C parse what agents wrote, so a child of the same executable makes the texts, and the loop writes down
//! what it says. No verdict rests on them, and a run goes on without them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use peers_checks::codemap::Outlines;
use peers_checks::primer::{Primer, primer};
use peers_git::{ControlDir, Git};
use peers_model::{CommitId, RunRequest, limits};
use peers_sandbox::run_watched;
use peers_store::layout::{peers, store};
use peers_store::{Area, Disk, FsDisk};
use peers_sys::digest::sha256_hex;
use peers_sys::error::chain;
use peers_sys::spawn::{Limits, RawExit, Spawn, StubProgram};
use peers_sys::{SafeDir, term};

/// The first argument by which a binary is asked to make the texts.
pub const ENTRY: &str = "__primer";

/// Nothing takes longer. Signals wait for it.
const LIMIT: Duration = Duration::from_mins(1);
const MEMORY: u64 = 4 * 1024 * 1024 * 1024;
/// What the first line of a file of ours says.
const MADE: &str = "made by peers ";
/// Bytes in which that line stands.
const FIRST_LINE: u64 = 200;

/// What a start wants, by what it was asked.
fn wanted(request: &RunRequest) -> Vec<&'static str> {
    let recon = (!request.no_recon).then_some(peers::RECON);
    let map = [peers::CODEMAP, peers::CODEMAP_DIGEST].into_iter().filter(|_| !request.no_codemap);
    recon.into_iter().chain(map).collect()
}

const FILES: [&str; 3] = [peers::RECON, peers::CODEMAP_DIGEST, peers::CODEMAP];

/// The digests of files by name.
type Seen = BTreeMap<String, String>;

/// The files that are there, for a prompt. One that somebody has written since the run began is none.
pub(crate) fn there<D: Disk>(disk: &mut D) -> Vec<&'static str> {
    let kept = kept(disk);
    FILES
        .into_iter()
        .filter(|file| kept.get(*file).is_some_and(|was| seen(disk, file).as_ref() == Some(was)))
        .collect()
}

fn kept<D: Disk>(disk: &mut D) -> Seen {
    let bytes = disk.read(Area::Store, store::PRIMERS, limits::KIB).ok().flatten();
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

fn seen<D: Disk>(disk: &mut D, file: &str) -> Option<String> {
    let bytes = disk.read(Area::Peers, file, limits::STORE_CACHE).ok().flatten()?;
    (!bytes.is_empty()).then(|| sha256_hex(&bytes))
}

/// Notes how they are. Names those that were made by peers and that somebody has written since, for people.
fn keep(disk: &mut FsDisk) -> Option<String> {
    let before = kept(disk);
    let now: Seen = FILES.into_iter().filter_map(|file| Some((file.to_owned(), seen(disk, file)?))).collect();
    if now == before {
        return None;
    }
    let written = serde_json::to_vec(&now).unwrap_or_default();
    if let Err(error) = disk.publish(Area::Store, store::PRIMERS, &written, false) {
        tracing::warn!(%error, "what peers read first was not noted");
    }
    let strange = |file: &&str| {
        before.get(*file).is_some_and(|was| now.get(*file).is_some_and(|now| now != was))
            && !is_ours(disk, file)
    };
    let strange: Vec<&str> = FILES.into_iter().filter(strange).collect();
    let verb = if strange.len() == 1 { "it" } else { "them" };
    (!strange.is_empty()).then(|| {
        format!("{} written by somebody since the last run began; read {verb}, or remove {verb} to have {verb} made anew", named(&strange))
    })
}

fn first_line(disk: &mut FsDisk, file: &str) -> String {
    let start = disk.read_at(Area::Peers, file, 0, FIRST_LINE).unwrap_or_default();
    String::from_utf8_lossy(&start).lines().next().unwrap_or_default().to_owned()
}

fn is_ours(disk: &mut FsDisk, file: &str) -> bool {
    first_line(disk, file).contains(MADE)
}

/// What was kept of earlier commits.
pub fn outlines<D: Disk>(disk: &mut D) -> Outlines {
    let bytes = disk.read(Area::Store, store::OUTLINES, limits::STORE_CACHE).ok().flatten();
    bytes.map(|bytes| Outlines::from_bytes(&bytes)).unwrap_or_default()
}

/// Keeps it. Losing it costs the parsing of the sources.
pub fn keep_outlines<D: Disk>(disk: &mut D, outlines: &Outlines) {
    if let Err(error) = disk.publish(Area::Store, store::OUTLINES, &outlines.to_bytes(), false) {
        tracing::warn!(%error, "what the sources define was not kept");
    }
}

/// From what the texts are made.
#[derive(Debug)]
pub(crate) struct Making {
    /// What becomes the program.
    pub(crate) stub: StubProgram,
    /// A binary that knows [`ENTRY`].
    pub(crate) program: PathBuf,
    /// The control git directory.
    pub(crate) control: PathBuf,
    /// The trusted store.
    pub(crate) store: PathBuf,
    /// The commit.
    pub(crate) head: CommitId,
    /// The directories of the sources, if the operator named them.
    pub(crate) roots: Vec<String>,
}

impl Making {
    /// Writes the files that are wanted and are not of this commit. One that a person wrote stays. Why it could not be
    /// done, for people.
    pub(crate) fn refresh(&self, request: &RunRequest, disk: &mut FsDisk) -> Option<String> {
        let unwritten = self.write(request, disk);
        let strange = keep(disk);
        unwritten.or(strange)
    }

    fn write(&self, request: &RunRequest, disk: &mut FsDisk) -> Option<String> {
        let due: Vec<&str> = wanted(request).into_iter().filter(|file| self.is_due(disk, file)).collect();
        if due.is_empty() {
            return None;
        }
        let made = match self.ask() {
            Ok(made) => made,
            Err(why) => return Some(format!("{} not written: {why}", named(&due))),
        };
        let mut unwritten = None;
        for file in due {
            let text = match file {
                peers::RECON => &made.recon,
                peers::CODEMAP => &made.map,
                _ => &made.digest,
            };
            let text = self.stamped(file, text);
            if let Err(error) = disk.publish_read_only(Area::Peers, file, text.as_bytes()) {
                unwritten = Some(format!("{} not written: {}", named(&[file]), chain(&error)));
            }
        }
        keep_outlines(disk, &made.outlines);
        unwritten
    }

    /// Whether a file is not there, or says that it is ours and is of another commit or of another hand.
    fn is_due(&self, disk: &mut FsDisk, file: &str) -> bool {
        match disk.len(Area::Peers, file) {
            Ok(None) => true,
            Ok(Some(_)) => {
                let line = first_line(disk, file);
                // One with our line in it that is not as we left it was written by somebody else.
                let as_kept = kept(disk).get(file).cloned() == seen(disk, file);
                line.contains(MADE) && !(line.contains(&self.stamp()) && as_kept)
            }
            Err(_) => false,
        }
    }

    fn stamp(&self) -> String {
        format!("{MADE}{} from commit {}", env!("CARGO_PKG_VERSION"), self.head)
    }

    fn stamped(&self, file: &str, text: &str) -> String {
        let stamp = self.stamp();
        if file == peers::CODEMAP {
            format!("# {stamp}; without this line it is left as it is\n{text}")
        } else {
            format!("<!-- {stamp}; without this line it is left as it is -->\n{text}")
        }
    }

    /// Has the child make the texts.
    fn ask(&self) -> Result<Primer, String> {
        let mut spawn = Spawn::new(self.stub.clone(), &self.program, "/");
        spawn.args = [ENTRY.into(), self.control.clone().into(), self.store.clone().into()].to_vec();
        spawn.args.push(self.head.to_string().into());
        spawn.args.extend(self.roots.iter().map(OsString::from));
        spawn.limits = Limits { processes: None, file_bytes: Some(0), memory_bytes: Some(MEMORY) };
        let ran = run_watched(&spawn, LIMIT).map_err(|error| chain(&error))?;
        match ran.exit {
            Some(RawExit::Code(0)) if !ran.stdout.cut => {
                serde_json::from_slice(&ran.stdout.bytes).map_err(|_| "the answer is not readable".to_owned())
            }
            Some(RawExit::Code(0)) => Err("there is too much to say".to_owned()),
            Some(RawExit::Code(_)) => Err(term::line(&String::from_utf8_lossy(&ran.stderr.bytes), 300)),
            Some(RawExit::Signal(signal)) => Err(format!("what makes them was killed by signal {signal}")),
            None => Err(format!("it took longer than {} s", LIMIT.as_secs())),
        }
    }
}

fn named(files: &[&str]) -> String {
    let names: Vec<String> = files.iter().map(|file| format!(".peers/{file}")).collect();
    format!("{} {}", names.join(", "), if names.len() == 1 { "was" } else { "were" })
}

/// The child's part: `ENTRY CONTROL STORE COMMIT [ROOT]...`.
#[must_use]
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let made = made(args).and_then(|made| serde_json::to_vec(&made).map_err(|error| error.to_string()));
    // A reader that has gone wants nothing more.
    let told = match &made {
        Ok(bytes) => std::io::stdout().write_all(bytes).is_ok(),
        Err(why) => std::io::stderr().write_all(why.as_bytes()).is_ok(),
    };
    if made.is_ok() && told { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn made(mut args: impl Iterator<Item = OsString>) -> Result<Primer, String> {
    let (control, store) = args.next().zip(args.next()).ok_or("no directories were given")?;
    let mut words = args.map(|word| word.to_string_lossy().into_owned());
    let head = words.next().and_then(|word| CommitId::new(word).ok()).ok_or("no commit was given")?;
    let roots: Vec<String> = words.collect();
    let store = SafeDir::open_shared(Path::new(&store)).map_err(|error| chain(&error))?;
    let known = outlines(&mut FsDisk::new(store, None));
    // Reading starts no program.
    let control = ControlDir::open_or_create(Path::new(&control), Git::at(PathBuf::from("/bin/false")));
    let control = control.map_err(|error| chain(&error))?;
    primer(&control.facts(), &roots, &head, known).map_err(|error| chain(&error))
}
