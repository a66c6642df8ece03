//! From bytes to lines, and from lines to sections.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use peers_model::limits;

use super::meta::MetaLines;
use super::model::Plan;
use super::problem::{Problem, Report, shown};
use super::steps::StepLines;

/// The longest line that is read, in bytes.
pub const LINE: usize = 16 * 1024;

/// What a text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The plan, exactly if there is no error.
    pub plan: Option<Plan>,
    /// Why it is no plan, in the order of the lines.
    pub errors: Vec<Problem>,
    /// What is hardly meant that way, in the order of the lines.
    pub warnings: Vec<Problem>,
}

/// Reads a plan. Tells all that is wrong at once.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut report = Report::default();
    let plan = if u64::try_from(bytes.len()).is_ok_and(|len| len <= limits::CONFIG) {
        read(bytes, &mut report)
    } else {
        report.error(1, format!("a plan has at most {} bytes; this one has {}", limits::CONFIG, bytes.len()));
        None
    };
    let (errors, warnings) = report.finish();
    Parsed { plan: plan.filter(|_| errors.is_empty()), errors, warnings }
}

fn read(bytes: &[u8], report: &mut Report) -> Option<Plan> {
    let mut reader = Reader::default();
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        if std::str::from_utf8(line).is_err() {
            report.error(number, "not UTF-8");
        }
        reader.line(number, String::from_utf8_lossy(line).trim_end(), report);
    }
    reader.finish(report)
}

/// Where the next line stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Above the name of the feature.
    #[default]
    Top,
    Meta,
    Steps,
    /// For people, or unknown.
    Other,
}

#[derive(Debug, Default)]
struct Reader {
    section: Section,
    title: Option<String>,
    /// The sections so far, with their lines.
    opened: BTreeMap<String, usize>,
    meta: MetaLines,
    steps: StepLines,
}

impl Reader {
    /// Takes a line without its end.
    fn line(&mut self, number: usize, line: &str, report: &mut Report) {
        let read = match self.section {
            Section::Top => !line.is_empty(),
            Section::Meta | Section::Steps => true,
            Section::Other => line.starts_with("##"),
        };
        if !read {
            return;
        }
        if line.len() > LINE {
            return report
                .error(number, format!("a line has at most {LINE} bytes; this one has {}", line.len()));
        }
        // A tab has a meaning of its own in each section.
        if line.chars().any(|c| c.is_control() && c != '\t') {
            report.error(number, "a control character");
        }
        if self.section == Section::Top {
            self.section = Section::Other;
            let name = line.strip_prefix('#').filter(|rest| rest.starts_with([' ', '\t'])).map(str::trim);
            match name {
                Some(name) => self.title = Some(name.to_owned()),
                None => report.error(number, "the first line is the name of the feature: write `# NAME`"),
            }
            if name.is_some() {
                return;
            }
        }
        if let Some(rest) = line.strip_prefix("##").filter(|rest| !rest.starts_with('#')) {
            if rest.starts_with([' ', '\t']) {
                return self.open(number, rest.trim(), report);
            }
            report.warn(number, "no section: write `## NAME`, with a blank");
        }
        match self.section {
            Section::Top | Section::Other => {}
            Section::Meta => self.meta.line(number, line, report),
            Section::Steps => self.steps.line(number, line, report),
        }
    }

    fn open(&mut self, number: usize, name: &str, report: &mut Report) {
        self.section = match name {
            "Meta" => Section::Meta,
            "Steps" => Section::Steps,
            _ => Section::Other,
        };
        for known in ["Meta", "Steps"] {
            if name != known && name.eq_ignore_ascii_case(known) {
                report.warn(
                    number,
                    format!("this is not `## {known}`: names of sections are written like this"),
                );
            }
        }
        match self.opened.entry(name.to_owned()) {
            Entry::Vacant(free) => {
                free.insert(number);
            }
            Entry::Occupied(first) => {
                report.error(number, format!("`## {}` stands in line {} already", shown(name), first.get()));
            }
        }
    }

    fn finish(self, report: &mut Report) -> Option<Plan> {
        let Self { section, title, opened, meta, steps } = self;
        if section == Section::Top {
            report.error(1, "the file is empty");
        }
        let mut missing = |name: &str| {
            let line = opened.get(name).copied();
            if line.is_none() {
                report.error(1, format!("no section `## {name}`"));
            }
            line
        };
        let (meta_at, steps_at) = (missing("Meta"), missing("Steps"));
        let (meta, calibrated) = match meta_at {
            Some(line) => meta.finish(line, report),
            None => (None, None),
        };
        let steps = steps_at.map(|line| steps.finish(line, calibrated, report));
        Some(Plan { title: title?, meta: meta?, steps: steps? })
    }
}
