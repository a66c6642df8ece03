//! The bug-hunt vocabulary and what one commit claims in it. The ledger decides what counts.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::ids::BugId;
use crate::trailer::{JsonObject, Message, json_objects};

/// Shortest reason of a deferral or waiver, in characters, runs of blanks counted as one.
pub const MIN_REASON: usize = 40;

const TITLE_CHARS: usize = 300;
const TEXT_CHARS: usize = 4096;

/// How bad a bug is, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// A blemish.
    Low,
    /// Degraded use, or a real edge case is not handled.
    Med,
    /// A broken feature, a wrong result, a race.
    High,
    /// Data loss, remote code execution, a crash on common input.
    Crit,
}

impl Severity {
    /// All of them, worst first.
    pub const ALL: [Self; 5] = [Self::Crit, Self::High, Self::Med, Self::Low, Self::Info];

    /// Reads a severity, letter case aside; `critical` and `medium` are understood too.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "crit" | "critical" => Some(Self::Crit),
            "high" => Some(Self::High),
            "med" | "medium" => Some(Self::Med),
            "low" => Some(Self::Low),
            "info" => Some(Self::Info),
            _ => None,
        }
    }

    /// Whether an open bug of this severity keeps the gate red.
    #[must_use]
    pub fn blocks(self) -> bool {
        self >= Self::Med
    }

    /// The word used in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Med => "med",
            Self::High => "high",
            Self::Crit => "crit",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One `Bug-Report:` trailer that is no flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugReport {
    /// The trailer's value; the refusal when it is no bug id.
    pub id: Result<BugId, String>,
    /// What the JSON block says.
    pub body: Result<ReportBody, ReportDefect>,
}

impl BugReport {
    /// Whether this report alone keeps a gate red: severity at least med, or unreadable.
    #[must_use]
    pub fn blocks(&self) -> bool {
        match (&self.id, &self.body) {
            (Ok(_), Ok(body)) => body.severity.blocks(),
            (Err(_), _) | (_, Err(_)) => true,
        }
    }
}

/// The JSON block of a report. All texts are untrusted and bounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportBody {
    /// The highest severity among the blocks with this id.
    pub severity: Severity,
    /// One line; the commit's subject when the block has none.
    pub title: String,
    /// Longer text.
    pub description: Option<String>,
    /// Who should fix it, by the reporter's advice.
    pub fix_by: Option<String>,
    /// `path:line`.
    pub location: Option<String>,
    /// The file; taken from `location` when absent.
    pub file: Option<String>,
    /// The function.
    pub function: Option<String>,
    /// The weakness class, such as `CWE-79`.
    pub cwe: Option<String>,
}

/// Why a report cannot be read. Such a report blocks until it is filed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportDefect {
    /// The message has no `## Bug-Report` section.
    #[error("there is no `## Bug-Report` section")]
    NoSection,
    /// No JSON object in the section has this id.
    #[error("no JSON object in `## Bug-Report` has this `id`")]
    NoJson,
    /// The severity is missing or none of the five.
    #[error("`severity` is not one of crit, high, med, low, info")]
    UnknownSeverity,
}

/// `Bug-Report: weak-fix:<id>` or `shallow-fix:<id>`: an earlier fix is not good enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixFlag {
    /// Which of the two words was used.
    pub kind: FlagKind,
    /// The bug, when the rest is a bug id.
    pub id: Option<BugId>,
}

/// The two words of a [`FixFlag`]. They mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlagKind {
    /// `weak-fix:`
    Weak,
    /// `shallow-fix:`
    Shallow,
}

/// One `Bug-Resolves:` trailer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugResolution {
    /// The bug.
    pub id: BugId,
    /// The JSON block; none means that the resolution does not count.
    pub body: Option<ResolutionBody>,
}

/// The JSON block of a resolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolutionBody {
    /// What became of the bug.
    pub status: ResolutionStatus,
    /// Why. Untrusted, bounded.
    pub note: String,
}

/// What a resolution says became of a bug.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolutionStatus {
    /// The cause is gone.
    Fixed,
    /// It stays, on purpose.
    Wontfix,
    /// It is another bug.
    Duplicate {
        /// The other bug; without it the resolution closes nothing.
        of: Option<BugId>,
    },
    /// It is no bug. Also what an unknown word is read as.
    Invalid,
}

/// One `Bug-Defer:` trailer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BugDefer {
    /// The bug.
    pub id: BugId,
    /// Why, if a block says so. Untrusted, bounded.
    pub reason: Option<String>,
}

/// `Bug-Reproduce-Waive:` with a reason of [`MIN_REASON`] characters and a `Peer:` trailer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiver {
    /// The bug.
    pub id: BugId,
    /// Why no test can reproduce it. Untrusted, bounded.
    pub reason: String,
}

/// Everything that one commit claims about bugs, in the order of its trailers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BugClaims {
    /// Reports.
    pub reports: Vec<BugReport>,
    /// Flags against earlier fixes.
    pub flags: Vec<FixFlag>,
    /// Resolutions.
    pub resolutions: Vec<BugResolution>,
    /// Deferrals.
    pub deferrals: Vec<BugDefer>,
    /// Bugs that the commit's tests reproduce.
    pub reproduces: Vec<BugId>,
    /// Valid waivers of a reproducing test.
    pub waivers: Vec<Waiver>,
    /// Bugs whose fix the author has verified.
    pub verified: Vec<BugId>,
    /// Bugs whose resolution or lower severity the author agrees to.
    pub acks: Vec<BugId>,
    /// Bugs that the author opens again.
    pub reopened: Vec<BugId>,
    /// What is wrong with the format.
    pub warnings: Vec<String>,
}

impl BugClaims {
    /// Reads the bug claims of a message.
    #[must_use]
    pub fn read(message: &Message<'_>) -> Self {
        let mut claims = Self::default();
        claims.read_reports(message);
        claims.read_resolutions(message);
        claims.read_deferrals(message);
        claims.reproduces = claims.ids(message, "Bug-Reproduce");
        claims.reproduces.extend(legacy_reproducer(message.subject));
        claims.read_waivers(message);
        claims.verified = claims.ids(message, "Bug-Verified");
        claims.acks = claims.ids(message, "Bug-Ack");
        claims.reopened = claims.ids(message, "Bug-Reopen");
        claims
    }

    /// Whether a commit message can hold any bug claim. Cheap: lets a walk over a long history
    /// keep only the few commits that matter. May say yes for nothing, never no for something.
    #[must_use]
    pub fn may_be_in(message: &str) -> bool {
        let bytes = message.as_bytes();
        let dashes = bytes.iter().enumerate().filter(|(_, b)| **b == b'-');
        dashes.filter_map(|(at, _)| bytes.get(at.checked_sub(3)?..at)).any(|w| w.eq_ignore_ascii_case(b"bug"))
    }

    /// Whether the commit says that something blocks: a report of severity med or worse, a report
    /// that cannot be read, or a flag.
    #[must_use]
    pub fn blocks(&self) -> bool {
        !self.flags.is_empty() || self.reports.iter().any(BugReport::blocks)
    }

    /// The bugs that the commit's tests reproduce, owned.
    #[must_use]
    pub fn reproduced_ids(&self) -> Vec<BugId> {
        self.reproduces.clone()
    }

    fn read_reports(&mut self, message: &Message<'_>) {
        if message.cut && message.body.is_empty() {
            // Nothing but trailers was read, so some were not: there may be any number of reports among them.
            let why =
                "the trailers of this message are longer than 64 KiB; file its reports one by one".to_owned();
            self.warnings.push(format!("bug report: {why}"));
            self.reports.push(BugReport { id: Err(why), body: Err(ReportDefect::NoSection) });
        }
        let values: Vec<&str> = message.trailers.all("Bug-Report").collect();
        if values.is_empty() {
            return;
        }
        let has_section = message.has_section("Bug-Report");
        let objects = section_objects(message, "Bug-Report");
        for value in values {
            if let Some(flag) = flag(value) {
                self.flags.push(flag);
                continue;
            }
            if !has_section && says_none(value) {
                self.warnings.push("`Bug-Report:` without a bug; leave the trailer out".to_owned());
                continue;
            }
            let body = if has_section {
                report_body(value, &objects, message.subject)
            } else {
                Err(ReportDefect::NoSection)
            };
            let id = BugId::new(value).map_err(|e| e.to_string());
            match (&id, &body) {
                (Err(why), _) => self.warnings.push(format!("bug report: {why}")),
                (Ok(id), Err(defect)) => self.warnings.push(format!("bug report {id}: {defect}")),
                (Ok(_), Ok(_)) => {}
            }
            self.reports.push(BugReport { id, body });
        }
    }

    fn read_resolutions(&mut self, message: &Message<'_>) {
        let ids = self.ids(message, "Bug-Resolves");
        if ids.is_empty() {
            return;
        }
        let objects = section_objects(message, "Bug-Resolution");
        for id in ids {
            let block = objects.iter().find(|o| names(o, &["resolves", "id"], &id));
            let body = block.map(|o| {
                let word = text(o, "status", 40).unwrap_or_default().to_ascii_lowercase();
                let status = match word.as_str() {
                    "fixed" => ResolutionStatus::Fixed,
                    "wontfix" => ResolutionStatus::Wontfix,
                    "duplicate" => {
                        ResolutionStatus::Duplicate { of: text(o, "of", 100).and_then(|t| BugId::new(t).ok()) }
                    }
                    "invalid" => ResolutionStatus::Invalid,
                    _ => {
                        self.warnings.push(format!(
                            "resolution of {id}: `status` is not fixed, wontfix, duplicate or invalid; read as invalid"
                        ));
                        ResolutionStatus::Invalid
                    }
                };
                ResolutionBody { status, note: text(o, "note", TEXT_CHARS).unwrap_or_default() }
            });
            if body.is_none() {
                self.warnings.push(format!(
                    "resolution of {id} does not count: no JSON object in `## Bug-Resolution` names it"
                ));
            }
            self.resolutions.push(BugResolution { id, body });
        }
    }

    fn read_deferrals(&mut self, message: &Message<'_>) {
        let ids = self.ids(message, "Bug-Defer");
        if ids.is_empty() {
            return;
        }
        let objects = section_objects(message, "Bug-Defer");
        self.deferrals.extend(ids.into_iter().map(|id| {
            let block = objects.iter().find(|o| names(o, &["defers", "id"], &id));
            let reason =
                block.and_then(|o| text(o, "reason", TEXT_CHARS).or_else(|| text(o, "note", TEXT_CHARS)));
            BugDefer { id, reason }
        }));
    }

    fn read_waivers(&mut self, message: &Message<'_>) {
        let ids = self.ids(message, "Bug-Reproduce-Waive");
        if ids.is_empty() {
            return;
        }
        let signed = message.trailers.last("Peer").is_some_and(|p| !p.is_empty());
        let objects = json_objects(message.body);
        for id in ids {
            let block = objects.iter().find(|o| names(o, &["id", "ids", "waives"], &id));
            let reason =
                block.and_then(|o| text(o, "reason", TEXT_CHARS)).filter(|r| reason_chars(r) >= MIN_REASON);
            match reason {
                Some(reason) if signed => self.waivers.push(Waiver { id, reason }),
                Some(_) => self.warnings.push(format!("waiver of {id} does not count: no `Peer:` trailer")),
                None => self.warnings.push(format!(
                    "waiver of {id} does not count: no JSON object names it with a `reason` of {MIN_REASON} characters"
                )),
            }
        }
    }

    /// The bug ids of all trailers `key`, each once; what is no id becomes a warning.
    fn ids(&mut self, message: &Message<'_>, key: &'static str) -> Vec<BugId> {
        let mut found: Vec<BugId> = Vec::new();
        for value in message.trailers.all(key) {
            match BugId::new(value) {
                Ok(id) if found.contains(&id) => {}
                Ok(id) => found.push(id),
                Err(why) => self.warnings.push(format!("`{key}:` is ignored: {why}")),
            }
        }
        found
    }
}

/// Length of a reason in characters, runs of blanks counted as one.
#[must_use]
pub fn reason_chars(reason: &str) -> usize {
    let words = reason.split_whitespace();
    words.map(|w| w.chars().count() + 1).sum::<usize>().saturating_sub(1)
}

fn section_objects(message: &Message<'_>, name: &str) -> Vec<JsonObject> {
    message.sections(name).flat_map(json_objects).collect()
}

/// Among the blocks with this id the worst one speaks, so that a decoy cannot demote a report.
fn report_body(id: &str, objects: &[JsonObject], subject: &str) -> Result<ReportBody, ReportDefect> {
    let mut worst: Option<(Severity, &JsonObject)> = None;
    let mut unknown = false;
    for object in objects.iter().filter(|o| o.get("id").and_then(Value::as_str) == Some(id)) {
        match text(object, "severity", 40).and_then(|s| Severity::parse(&s)) {
            Some(severity) if worst.is_none_or(|(w, _)| severity > w) => worst = Some((severity, object)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    let (severity, object) = match worst {
        Some((severity, _)) if unknown && !severity.blocks() => return Err(ReportDefect::UnknownSeverity),
        Some(found) => found,
        None if unknown => return Err(ReportDefect::UnknownSeverity),
        None => return Err(ReportDefect::NoJson),
    };
    let location = text(object, "location", TITLE_CHARS);
    let file = text(object, "file", TITLE_CHARS).or_else(|| {
        let (file, _) = location.as_deref()?.split_once(':').unwrap_or((location.as_deref()?, ""));
        (!file.is_empty()).then(|| file.to_owned())
    });
    Ok(ReportBody {
        severity,
        title: text(object, "title", TITLE_CHARS)
            .unwrap_or_else(|| subject.chars().take(TITLE_CHARS).collect()),
        description: text(object, "description", TEXT_CHARS),
        fix_by: text(object, "fix_by", TITLE_CHARS),
        location,
        file,
        function: text(object, "function", TITLE_CHARS),
        cwe: text(object, "cwe", TITLE_CHARS).or_else(|| text(object, "CWE", TITLE_CHARS)),
    })
}

fn flag(value: &str) -> Option<FixFlag> {
    let (word, id) = value.split_once(':')?;
    let kind = match word.trim().to_ascii_lowercase().as_str() {
        "weak-fix" => FlagKind::Weak,
        "shallow-fix" => FlagKind::Shallow,
        _ => return None,
    };
    Some(FixFlag { kind, id: BugId::new(id.trim()).ok() })
}

fn says_none(value: &str) -> bool {
    ["", "-", "none", "n/a", "na"].iter().any(|w| value.eq_ignore_ascii_case(w))
}

/// Whether one of the keys holds this id, alone or in a list.
fn names(object: &JsonObject, keys: &[&str], id: &BugId) -> bool {
    keys.iter().filter_map(|k| object.get(*k)).any(|value| match value {
        Value::String(s) => s == id.as_str(),
        Value::Array(items) => items.iter().any(|i| i.as_str() == Some(id.as_str())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    })
}

/// A text or number of an object, trimmed, bounded, `None` when blank.
fn text(object: &JsonObject, key: &str, chars: usize) -> Option<String> {
    let found: String = match object.get(key)? {
        Value::String(s) => s.trim().chars().take(chars).collect(),
        Value::Number(n) => n.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    (!found.is_empty()).then_some(found)
}

fn legacy_reproducer(subject: &str) -> Option<BugId> {
    let rest = subject.strip_prefix("TDD: reproducer for ")?;
    let digits = rest.strip_prefix("BUG-")?;
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    if count == 0 || digits.get(count..)?.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    BugId::new(rest.get(..4 + count)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BugClaims {
        BugClaims::read(&Message::parse(text))
    }

    fn report(section: &str) -> Result<ReportBody, ReportDefect> {
        let mut claims = read(&format!("subject\n\n## Bug-Report\n{section}\n\nBug-Report: B1\nPeer: a\n"));
        assert_eq!(claims.reports.len(), 1);
        claims.reports.remove(0).body
    }

    fn id(text: &str) -> BugId {
        BugId::new(text).unwrap()
    }

    #[test]
    fn a_report_gives_all_its_fields() {
        let body = report(
            r#"{"id":"B1","severity":"HIGH","description":"d","fix_by":"b","location":"src/a.rs:7","CWE":79}"#,
        )
        .unwrap();
        assert_eq!(body.severity, Severity::High);
        assert_eq!(body.title, "subject");
        assert_eq!(body.file.as_deref(), Some("src/a.rs"));
        assert_eq!(body.cwe.as_deref(), Some("79"));
        assert_eq!(body.function, None);
    }

    #[test]
    fn a_quote_in_prose_or_a_copied_comment_hides_no_report() {
        let crit =
            "{\"id\":\"B1\", // the same as the trailer\n\"severity\":\"crit\" // crit|high|med|low|info\n}";
        for section in [crit.to_owned(), format!("on a 5\" display\n{crit}"), format!("```json\n{crit}\n```")]
        {
            assert_eq!(report(&section).unwrap().severity, Severity::Crit, "{section}");
        }
    }

    #[test]
    fn a_whole_message_with_crlf_or_behind_a_cherry_pick_gives_the_same_report() {
        let plain =
            "subject\n\n## Bug-Report\n{\"id\":\"B1\",\"severity\":\"crit\"}\n\nBug-Report: B1\nPeer: a\n";
        let picked =
            plain.replace("Bug-Report: B1\n", "Bug-Report: B1\n(cherry picked from commit 0123456789)\n");
        let expected = read(plain);
        assert_eq!(expected.reports.len(), 1);
        for text in [plain.replace('\n', "\r\n"), picked.clone(), picked.replace('\n', "\r\n")] {
            assert_eq!(read(&text), expected, "{text:?}");
        }
        let done = "subject\n\nBug-Resolved: B1\nPeer: a\n";
        assert_eq!(read(&done.replace('\n', "\r\n")), read(done));
    }

    #[test]
    fn row_10_a_decoy_cannot_demote_a_report() {
        let info = r#"{"id":"B1","severity":"info"}"#;
        let crit = r#"{"id":"B1","severity":"crit"}"#;
        for section in [format!("{info}\n{crit}"), format!("{crit}{info}")] {
            assert_eq!(report(&section).unwrap().severity, Severity::Crit);
        }
        let nonsense = r#"{"id":"B1","severity":"worst"}"#;
        assert_eq!(report(&format!("{info}{nonsense}")), Err(ReportDefect::UnknownSeverity));
        assert_eq!(report(&format!("{crit}{nonsense}")).unwrap().severity, Severity::Crit);
    }

    #[test]
    fn a_report_that_cannot_be_read_blocks() {
        assert_eq!(report("{\"id\":\"B1\",\"severity\":"), Err(ReportDefect::NoJson));
        assert_eq!(report(r#"{"id":"B2","severity":"info"}"#), Err(ReportDefect::NoJson));
        assert_eq!(report(r#"{"id":"B1"}"#), Err(ReportDefect::UnknownSeverity));
        assert_eq!(report(r#"{"id":"B1","severity":true}"#), Err(ReportDefect::UnknownSeverity));
        let bare = read("s\n\n{\"id\":\"B1\",\"severity\":\"info\"}\n\nBug-Report: B1\n");
        assert_eq!(
            bare.reports[0].body,
            Err(ReportDefect::NoSection),
            "JSON outside the section is not read"
        );
        assert!(bare.blocks());
        assert!(!bare.warnings.is_empty());
    }

    #[test]
    fn a_report_without_a_possible_id_blocks_too() {
        let claims =
            read("s\n\n## Bug-Report\n{\"id\":\"my bug\",\"severity\":\"info\"}\n\nBug-Report: my bug\n");
        assert!(claims.reports[0].id.is_err());
        assert!(claims.blocks());
    }

    #[test]
    fn saying_that_there_is_no_bug_is_no_report() {
        for none in ["none", "N/A", "-", ""] {
            let claims = read(&format!("s\n\nPeer: a\nBug-Report: {none}\n"));
            assert!(claims.reports.is_empty(), "{none}");
            assert_eq!(claims.warnings.len(), 1);
        }
        assert!(
            read("s\n\n## Bug-Report\nx\n\nBug-Report: none\n").blocks(),
            "with a section it is a report"
        );
    }

    #[test]
    fn row_55_flags_block_whatever_the_severity() {
        let claims =
            read("s\n\nBug-Report: Weak-Fix: B1\nBug-Report: SHALLOW-FIX:B2\nBug-Report: weak-fix:\n");
        assert_eq!(claims.reports, []);
        assert_eq!(claims.flags.len(), 3);
        assert_eq!(claims.flags[0], FixFlag { kind: FlagKind::Weak, id: Some(id("B1")) });
        assert_eq!(claims.flags[2].id, None);
        assert!(claims.blocks());
    }

    #[test]
    fn row_55_info_and_low_do_not_block() {
        for (severity, blocks) in
            [("info", false), ("low", false), ("med", true), ("high", true), ("crit", true)]
        {
            let text = format!(
                "s\n\n## Bug-Report\n{{\"id\":\"B\",\"severity\":\"{severity}\"}}\n\nBug-Report: B\n"
            );
            assert_eq!(read(&text).blocks(), blocks, "{severity}");
        }
    }

    #[test]
    fn a_resolution_takes_the_first_block_that_names_it() {
        let claims = read(
            "s\n\n## Bug-Resolution\n{\"resolves\":\"X\",\"status\":\"fixed\"}\n{\"id\":\"B\",\"status\":\"Wontfix\",\"note\":\"n\"}\n\
             {\"resolves\":\"B\",\"status\":\"fixed\"}\n\nBug-Resolves: B\nBug-Resolves: C\nBug-Resolves: b d\n",
        );
        assert_eq!(
            claims.resolutions,
            [
                BugResolution {
                    id: id("B"),
                    body: Some(ResolutionBody { status: ResolutionStatus::Wontfix, note: "n".into() })
                },
                BugResolution { id: id("C"), body: None },
            ]
        );
        assert_eq!(claims.warnings.len(), 2);
    }

    #[test]
    fn one_block_may_resolve_several_bugs() {
        let claims = read(
            "s\n\n## Bug-Resolution\n{\"resolves\":[\"A\",\"B\"],\"status\":\"duplicate\",\"of\":\"C\"}\n\n\
             Bug-Resolves: A\nBug-Resolves: B\n",
        );
        for resolution in &claims.resolutions {
            let status = &resolution.body.as_ref().unwrap().status;
            assert_eq!(status, &ResolutionStatus::Duplicate { of: Some(id("C")) });
        }
    }

    #[test]
    fn an_unknown_status_is_read_as_invalid_with_a_warning() {
        for status in ["\"done\"", "7", "null"] {
            let claims = read(&format!(
                "s\n\n## Bug-Resolution\n{{\"resolves\":\"B\",\"status\":{status}}}\n\nBug-Resolves: B\n"
            ));
            assert_eq!(claims.resolutions[0].body.as_ref().unwrap().status, ResolutionStatus::Invalid);
            assert_eq!(claims.warnings.len(), 1);
        }
    }

    #[test]
    fn a_deferral_carries_its_reason_if_it_has_one() {
        let claims = read(
            "s\n\n## Bug-Defer\n{\"defers\":\"A\",\"note\":\"later\"}\n{\"id\":\"B\"}\n\nBug-Defer: A\nBug-Defer: B\n",
        );
        assert_eq!(claims.deferrals[0].reason.as_deref(), Some("later"));
        assert_eq!(claims.deferrals[1].reason, None);
    }

    #[test]
    fn a_waiver_needs_a_peer_and_a_long_reason() {
        let reason = "the race needs two hosts and a broken switch to show";
        let make = |key: &str, value: &str, reason: &str, peer: &str| {
            read(&format!(
                "s\n\n{{\"{key}\":{value},\"reason\":\"{reason}\"}}\n\nBug-Reproduce-Waive: B\n{peer}\n"
            ))
        };
        for (key, value) in [("id", "\"B\""), ("ids", "[\"A\",\"B\"]"), ("waives", "\"B\"")] {
            assert_eq!(make(key, value, reason, "Peer: a").waivers.len(), 1, "{key}");
        }
        assert!(make("id", "\"B\"", reason, "Note: x").waivers.is_empty());
        assert!(make("id", "\"B\"", "too short", "Peer: a").waivers.is_empty());
        assert!(make("id", "\"B\"", &" ".repeat(60), "Peer: a").waivers.is_empty());
        assert!(make("id", "\"C\"", reason, "Peer: a").waivers.is_empty());
    }

    #[test]
    fn reproducers_come_from_the_trailer_or_the_old_subject() {
        assert_eq!(
            read("s\n\nBug-Reproduce: A\nBug-Reproduce: A\nBug-Reproduce: B\n").reproduces,
            [id("A"), id("B")]
        );
        assert_eq!(read("TDD: reproducer for BUG-12\n").reproduces, [id("BUG-12")]);
        assert_eq!(read("TDD: reproducer for BUG-12: race\n").reproduces, [id("BUG-12")]);
        for no in ["TDD: reproducer for BUG-", "TDD: reproducer for BUG-1x", "TDD: reproducer for X-1"] {
            assert!(read(no).reproduces.is_empty(), "{no}");
        }
    }

    #[test]
    fn the_cheap_test_never_misses_a_claim() {
        for text in ["s\n\nBUG-REPORT: x", "TDD: reproducer for BUG-1", "s\n\nbug-ack: a"] {
            assert!(BugClaims::may_be_in(text), "{text}");
        }
        assert!(!BugClaims::may_be_in("Fix the debug build"));
    }

    #[test]
    fn a_report_in_a_message_that_is_too_long_blocks() {
        let body = "x".repeat(70_000);
        let long = format!(
            "Subject\n\n## Bug-Report\n{{\"id\":\"big-1\",\"description\":\"{body}\"}}\n\nBug-Report: big-1\n"
        );
        let claims = BugClaims::read(&Message::parse(&long));
        assert!(claims.blocks() && claims.reports[0].id.is_ok(), "{claims:?}");
        let many = (0..9000).map(|n| format!("Bug-Report: b-{n:05}")).collect::<Vec<_>>().join("\n");
        let claims = BugClaims::read(&Message::parse(&format!("Subject\n\n{many}")));
        assert!(claims.blocks() && claims.reports[0].id.is_err());
    }

    #[test]
    fn blanks_do_not_make_a_reason_longer() {
        assert_eq!(reason_chars(""), 0);
        assert_eq!(reason_chars("  a \n\n bc  "), 4);
    }
}
