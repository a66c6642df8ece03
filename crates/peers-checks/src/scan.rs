//! Reading the sources of the commit that is judged, on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use peers_code::{MAX_BYTES, Source, Unreadable, is_source, is_test};
use peers_model::CommitId;

use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

/// Bytes that are held at a time.
const BATCH: usize = 64 * 1024 * 1024;
/// Git's file modes of regular files.
const REGULAR: [u32; 2] = [0o100_644, 0o100_755];

/// Which files a check reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those of the product.
    Sources,
    /// Those with tests; in Rust also the modules of tests in sources.
    Tests,
}

/// What was found, and what could not be read.
#[derive(Debug)]
pub(crate) struct Scan<T> {
    /// What was found, by path.
    pub(crate) found: Vec<(String, T)>,
    /// Files that cannot be read as what they are.
    pub(crate) unreadable: Vec<Finding>,
}

/// Asks each file of a kind for something. Files are read in order of their paths, and so are the answers.
///
/// # Errors
/// [`CouldNot`] for a tree or an object that cannot be read.
pub(crate) fn scan<T: Send>(
    cx: &CheckCx,
    which: Which,
    ask: &(dyn Fn(&str, &Source<'_>) -> T + Sync),
) -> Result<Scan<T>, CouldNot> {
    scan_at(cx, cx.head(), which, ask)
}

/// The same of another commit.
///
/// # Errors
/// [`CouldNot`] for a tree or an object that cannot be read.
pub(crate) fn scan_at<T: Send>(
    cx: &CheckCx,
    commit: &CommitId,
    which: Which,
    ask: &(dyn Fn(&str, &Source<'_>) -> T + Sync),
) -> Result<Scan<T>, CouldNot> {
    let roots = &cx.settings().layout;
    let wanted = |path: &str| match which {
        Which::Sources => is_source(path, roots),
        // Rust has tests in its sources.
        Which::Tests => is_test(path) || (ends_with_rs(path) && is_source(path, roots)),
    };
    let files =
        cx.files_at(commit)?.into_iter().filter(|file| REGULAR.contains(&file.mode) && wanted(&file.path));
    let mut scan = Scan { found: Vec::new(), unreadable: Vec::new() };
    let (mut batch, mut held) = (Vec::new(), 0);
    for file in files {
        // A file that is too large to be parsed is told as such, not as an object that cannot be read.
        let bytes = match cx.read_at(commit, &file.path, MAX_BYTES + 1) {
            Ok(bytes) => bytes,
            Err(why) => {
                scan.unreadable.push(Finding::at(&file.path, None, "unreadable", &why.what, None));
                continue;
            }
        };
        held += bytes.len();
        batch.push((file.path, bytes));
        if held > BATCH {
            scan.take(cx, &std::mem::take(&mut batch), ask);
            held = 0;
        }
    }
    scan.take(cx, &batch, ask);
    Ok(scan)
}

/// The file, where what does not fit the grammar was there at the base: then it is the grammar that does not know all
/// of the language, or nobody's doing of now. More of it is no excuse.
fn as_before<'t>(cx: &CheckCx, path: &str, bytes: &'t [u8]) -> Option<Source<'t>> {
    let old = cx.read_at(cx.base()?, path, MAX_BYTES).ok()?;
    let old = Source::parse_loosely(path, &old).ok()?.errors();
    let now = Source::parse_loosely(path, bytes).ok()?;
    (now.errors() <= old).then_some(now)
}

/// Asks each item, on all processors. The answers are in the order of the items; one whose thread died has none.
pub(crate) fn each<I: Sync, T: Send>(items: &[I], ask: &(dyn Fn(&I) -> T + Sync)) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return done };
            done.push((at, ask(item)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len().div_ceil(4)).max(1);
    let done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut done = work();
        done.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
        done
    });
    let mut answers: Vec<Option<T>> = items.iter().map(|_| None).collect();
    for (at, answer) in done {
        if let Some(place) = answers.get_mut(at) {
            *place = Some(answer);
        }
    }
    answers
}

pub(crate) fn ends_with_rs(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| extension == "rs")
}

impl<T: Send> Scan<T> {
    fn take(
        &mut self,
        cx: &CheckCx,
        batch: &[(String, Vec<u8>)],
        ask: &(dyn Fn(&str, &Source<'_>) -> T + Sync),
    ) {
        let answers =
            each(batch, &|(path, bytes)| Source::parse(path, bytes).map(|source| ask(path, &source)));
        for ((path, bytes), answer) in batch.iter().zip(answers) {
            let mut bad = |what: &str| {
                self.unreadable.push(Finding::at(path, None, "unreadable", what, None));
            };
            match answer {
                Some(Ok(answer)) => self.found.push((path.clone(), answer)),
                Some(Err(Unreadable::Syntax(line))) => match as_before(cx, path, bytes) {
                    Some(source) => self.found.push((path.clone(), ask(path, &source))),
                    None => bad(&Unreadable::Syntax(line).to_string()),
                },
                Some(Err(why)) => bad(&why.to_string()),
                None => bad("reading it failed"),
            }
        }
    }

    /// How many files were looked at.
    pub(crate) fn files(&self) -> usize {
        self.found.len() + self.unreadable.len()
    }
}

/// The answer of a check that looked at these files, where it looked at none: nothing was measured then.
pub(crate) fn nothing_to_scan(cx: &CheckCx, files: usize) -> Option<Report> {
    if files > 0 {
        return None;
    }
    if cx.settings().allow_empty {
        return Some(Report::new(Verdict::Skip, "no source file, which `checks.allow_empty` allows"));
    }
    let mut report = Report::new(Verdict::Fail, "no source file: nothing to scan");
    report.hint = Some(
        "name the directories of the sources as `checks.layout` by `peers goals edit --config`, or set `checks.allow_empty: true`"
            .to_owned(),
    );
    Some(report)
}

/// An answer: how many files were read, and what was found in them. `advice` makes of findings a warning.
pub(crate) fn answer(
    files: usize,
    mut findings: Vec<Finding>,
    unreadable: Vec<Finding>,
    advice: bool,
) -> Report {
    let (bad, broken) = (findings.len(), unreadable.len());
    findings.extend(unreadable);
    let of = if files == 1 { "1 file".to_owned() } else { format!("{files} files") };
    let mut report = match (bad, broken) {
        (0, 0) => Report::new(Verdict::Pass, format!("nothing found in {of}")),
        (0, broken) => Report::new(Verdict::Fail, format!("{broken} of {of} cannot be read")),
        (bad, _) => {
            let verdict = if advice && broken == 0 { Verdict::Warn } else { Verdict::Fail };
            Report::new(verdict, format!("{bad} found in {of}"))
        }
    };
    report.count("files", files);
    report.count("findings", bad);
    report.count("unreadable", broken);
    report.findings = findings;
    report
}

/// A line number as findings have it.
pub(crate) fn at_line(line: usize) -> Option<u64> {
    u64::try_from(line).ok()
}
