//! The plan of the commit that is judged, and the one that was frozen.

use peers_core::plan::{Parsed, Plan, Problem, Step, parse};
use peers_core::scope::Glob;
use peers_git::GitError;
use peers_model::{CommitId, limits};

use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

/// The file at the top of the repository.
pub(crate) const PLAN: &str = "PLAN.md";
/// Git's mode of a symbolic link.
const LINK: u32 = 0o120_000;

/// A file at the top of the repository that peers write.
#[derive(Debug)]
pub(crate) enum Written {
    /// Its text.
    Text(String),
    /// There is none, or it is none that is read: why.
    Not(&'static str),
}

/// The text of a file of the commit that is judged.
///
/// # Errors
/// [`CouldNot`] for an object that cannot be read.
pub(crate) fn written(cx: &CheckCx, path: &str) -> Result<Written, CouldNot> {
    let cap = usize::try_from(limits::CONFIG).unwrap_or(usize::MAX);
    let blob = match cx.facts()?.read_blob(cx.head(), path, cap) {
        Ok(blob) => blob,
        Err(GitError::TooLarge { .. }) => return Ok(Written::Not("is larger than 2 MiB")),
        Err(error) => return Err(CouldNot::git(&format!("read {path}"), &error)),
    };
    Ok(match blob {
        None => Written::Not("is missing"),
        Some(blob) if blob.mode == LINK => Written::Not("is a symbolic link"),
        Some(blob) => String::from_utf8(blob.bytes).map_or(Written::Not("is not UTF-8"), Written::Text),
    })
}

/// The plan of the commit that is judged, or the answer where there is none.
pub(crate) fn at_head(cx: &CheckCx) -> Result<Plan, Box<Report>> {
    let text = match written(cx, PLAN).map_err(|why| Box::new(Report::from(why)))? {
        Written::Text(text) => text,
        Written::Not(why) => {
            let mut report = Report::new(Verdict::Fail, format!("{PLAN} {why}"));
            report.hint = Some("the frozen plan is .peers/PLAN.original.md".to_owned());
            return Err(Box::new(report));
        }
    };
    let Parsed { plan, errors, .. } = parse(text.as_bytes());
    plan.ok_or_else(|| {
        let mut report = Report::new(Verdict::Fail, format!("{PLAN} is not a valid plan"));
        report.findings = errors.iter().map(invalid).collect();
        report.hint = Some(format!("`peers plan check {PLAN}` shows all that is wrong with it"));
        Box::new(report)
    })
}

fn invalid(problem: &Problem) -> Finding {
    Finding::at(PLAN, u64::try_from(problem.line).ok(), "invalid", &problem.message, None)
}

/// The plan that was frozen.
///
/// # Errors
/// [`CouldNot`] when none is, or the store does not verify.
pub(crate) fn frozen(cx: &CheckCx) -> Result<Plan, CouldNot> {
    let (frozen, _) = cx.frozen()?;
    parse(&frozen.plan)
        .plan
        .ok_or_else(|| CouldNot::new("the frozen plan is not a plan this version can read"))
}

/// A finding about a step.
pub(crate) fn about(step: &Step, kind: &'static str, what: &str) -> Finding {
    Finding::at(PLAN, u64::try_from(step.line).ok(), kind, &format!("{} {what}", step.id), None)
}

/// The files that a step changes, as its plan says: paths and globs.
#[derive(Debug)]
pub(crate) struct Touches(Vec<Glob>);

impl Touches {
    pub(crate) fn of(step: &Step) -> Self {
        Self(step.touches.iter().filter_map(|glob| Glob::new(glob)).collect())
    }

    pub(crate) fn holds(&self, path: &str) -> bool {
        self.0.iter().any(|glob| glob.matches(path))
    }
}

/// The commit between base and head that a step names as its own.
#[derive(Debug)]
pub(crate) enum Named {
    /// It.
    Commit(CommitId),
    /// The step names none.
    Nothing,
    /// There is no such commit after the base, or more than one.
    Unknown,
}

/// Finds the commit of a step among `commits`.
pub(crate) fn named<'a>(step: &Step, commits: impl Iterator<Item = &'a CommitId>) -> Named {
    let Some(sha) = &step.sha else { return Named::Nothing };
    let mut fitting = commits.filter(|id| id.as_str().starts_with(sha.as_str()));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Named::Commit(only.clone()),
        _ => Named::Unknown,
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn steps(n: usize) -> String {
    if n == 1 { "1 step".to_owned() } else { format!("{n} steps") }
}
