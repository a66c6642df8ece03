//! `no-secrets`: no key and no token lies in the files, nor in what history has of them (`modes.md` §3.1).

use std::collections::BTreeSet;
use std::fmt::Write as _;

use peers_model::CommitId;
use peers_model::check::{self, Args};
use peers_sys::digest;

use crate::check::Check;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};
use crate::scan::{self, at_line};
use crate::secrets;

pub(crate) const CHECK: Check = Check {
    name: check::NO_SECRETS.name,
    about: "No key, token or password is committed",
    args: check::NO_SECRETS.args,
    run,
};

/// Bytes that are held at a time.
const BATCH: usize = 64 * 1024 * 1024;
/// Git's file mode of a symbolic link.
const LINK: u32 = 0o120_000;
/// Bytes of the target of a link that are read.
const MOST_OF_LINK: usize = 4096;
/// Git's file mode of a submodule.
const SUBMODULE: u32 = 0o160_000;

fn run(cx: &CheckCx, args: &Args) -> Report {
    let most = args.number(&check::NO_SECRETS, "max-bytes");
    judge(cx, args.is_on("history"), most).unwrap_or_else(Report::from)
}

/// A file to look at: its path, its object, and the commit that brought it, where it is there no more.
struct Place {
    path: String,
    mode: u32,
    id: String,
    commit: Option<CommitId>,
}

fn judge(cx: &CheckCx, history: bool, most: usize) -> Result<Report, CouldNot> {
    let allowed = &cx.settings().allow_secrets;
    let mut seen = BTreeSet::new();
    let mut places: Vec<Place> = Vec::new();
    let files = cx.files()?;
    let here: BTreeSet<&str> =
        files.iter().filter(|file| file.mode != LINK).map(|file| file.path.as_str()).collect();
    for file in &files {
        // The same content stands in several files: it is looked at once.
        if seen.insert(file.id.clone()) || file.mode == LINK {
            places.push(Place {
                path: file.path.clone(),
                mode: file.mode,
                id: file.id.clone(),
                commit: None,
            });
        }
    }
    let now = places.len();
    if history {
        cx.each_new_file(|commit, file| {
            if file.mode != LINK && seen.insert(file.id.clone()) {
                places.push(Place {
                    path: file.path,
                    mode: file.mode,
                    id: file.id,
                    commit: Some(commit.clone()),
                });
            }
        })?;
    }
    let facts = cx.facts()?;
    let mut found =
        Found { places: &places, allowed, findings: Vec::new(), excused: 0, told: BTreeSet::new() };
    let (mut batch, mut held) = (Vec::new(), 0);
    for (at, place) in places.iter().enumerate() {
        match place.mode {
            SUBMODULE => continue,
            LINK => {
                let target = facts.read_object(&place.id, MOST_OF_LINK).ok();
                let target = target.and_then(|target| String::from_utf8(target).ok());
                if !target.is_some_and(|target| leads_to_one(&place.path, &target, &here)) {
                    found.add(
                        at,
                        None,
                        "link",
                        "a symbolic link to what is not committed: it cannot be looked at",
                    );
                }
                continue;
            }
            _ => {}
        }
        match facts.read_object(&place.id, most) {
            Ok(bytes) => {
                held += bytes.len();
                batch.push((at, bytes));
            }
            Err(peers_git::GitError::TooLarge { .. }) if place.commit.is_none() => {
                let what = format!("more than {most} bytes, which are not looked at");
                found.add(at, None, "too-large", &what);
            }
            // What was too large and is gone is none of the tree's business any more.
            Err(peers_git::GitError::TooLarge { .. }) => {}
            Err(error) => return Err(CouldNot::git("read a file", &error)),
        }
        if held > BATCH {
            found.take(&std::mem::take(&mut batch))?;
            held = 0;
        }
    }
    found.take(&batch)?;
    let Found { mut findings, excused, .. } = found;
    findings.sort_by_key(|(at, _)| *at);
    let findings: Vec<Finding> = findings.into_iter().map(|(_, finding)| finding).collect();
    let bad = findings.len();
    let mut summary = match bad {
        0 => "no secret".to_owned(),
        1 => "1 finding".to_owned(),
        n => format!("{n} findings"),
    };
    let _infallible = write!(summary, " in {now} files");
    if history {
        let _infallible = write!(summary, " and {} older contents", places.len() - now);
    }
    let mut report = Report::new(if bad == 0 { Verdict::Pass } else { Verdict::Fail }, summary);
    report.count("contents", places.len());
    report.count("allowed", excused);
    report.hint = (bad > 0).then(|| {
        "take it out and revoke it; what is no secret, the operator lists by its number in `checks.allow_secrets` of config.yaml"
            .to_owned()
    });
    report.findings = findings;
    Ok(report)
}

/// Whether a link leads to a committed file, or to a directory with some: then what it leads to is looked at.
fn leads_to_one(link: &str, target: &str, files: &BTreeSet<&str>) -> bool {
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." if parts.pop().is_none() => return false,
            ".." | "." | "" => {}
            name => parts.push(name),
        }
    }
    let path = parts.join("/");
    let below = format!("{path}/");
    !target.starts_with('/')
        && (files.contains(path.as_str())
            || files.range(below.as_str()..).next().is_some_and(|next| next.starts_with(&below)))
}

/// What was found so far, each with the number of its place.
struct Found<'a> {
    places: &'a [Place],
    allowed: &'a [String],
    findings: Vec<(usize, Finding)>,
    excused: usize,
    told: BTreeSet<(&'a str, String)>,
}

impl Found<'_> {
    fn add(&mut self, at: usize, line: Option<u64>, kind: &'static str, what: &str) {
        if let Some(place) = self.places.get(at) {
            let finding = Finding::at(&place.path, line, kind, what, place.commit.as_ref());
            self.findings.push((at, finding));
        }
    }

    /// Looks at these contents.
    fn take(&mut self, batch: &[(usize, Vec<u8>)]) -> Result<(), CouldNot> {
        let answers = scan::each(batch, &|(_, bytes)| secrets::find(bytes));
        for ((at, _), secrets) in batch.iter().zip(answers) {
            let (Some(place), Some(secrets)) = (self.places.get(*at), secrets) else {
                return Err(CouldNot::new("looking for secrets failed"));
            };
            for secret in secrets {
                let key = key(secret.label, &secret.matched);
                if self.allowed.contains(&key) {
                    self.excused += 1;
                } else if self.told.insert((&place.path, key.clone())) {
                    let gone = if place.commit.is_some() {
                        ", removed since: revoke it, history keeps it"
                    } else {
                        ""
                    };
                    let what = format!("{}{gone} (to allow it: {key})", secret.label);
                    self.add(*at, at_line(secret.line), "secret", &what);
                }
            }
        }
        Ok(())
    }
}

/// What names a secret in the list of those that are allowed: a digest, so that the list holds none of them.
pub(crate) fn key(label: &str, matched: &[u8]) -> String {
    let mut text = label.as_bytes().to_vec();
    text.extend(matched);
    digest::sha256_hex(&text)
}
