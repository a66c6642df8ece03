//! The section `## Meta`.

use std::collections::BTreeMap;

use peers_model::PeerName;

use super::line;
use super::model::{Meta, Surface};
use super::problem::{Report, shown};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Surfaces,
    Acceptance,
    E2e,
    AcceptanceFiles,
    ConvergenceN,
    MutationTesting,
    ConfidenceCalibration,
    HonestyAuditPeer,
}

impl Key {
    fn read(word: &str) -> Option<Self> {
        Some(match word {
            "surfaces" => Self::Surfaces,
            "acceptance" => Self::Acceptance,
            "e2e" => Self::E2e,
            "acceptance_files" => Self::AcceptanceFiles,
            "convergence_n" => Self::ConvergenceN,
            "mutation_testing" => Self::MutationTesting,
            "confidence_calibration" => Self::ConfidenceCalibration,
            "honesty_audit_peer" => Self::HonestyAuditPeer,
            _ => return None,
        })
    }
}

/// What the lines said so far.
#[derive(Debug, Default)]
pub(super) struct MetaLines {
    seen: BTreeMap<Key, usize>,
    surfaces: Vec<Surface>,
    acceptance: Option<String>,
    e2e: Option<String>,
    acceptance_files: Vec<String>,
    convergence_n: Option<u32>,
    mutation_testing: bool,
    confidence_calibration: bool,
    honesty_audit_peer: Option<PeerName>,
}

impl MetaLines {
    pub(super) fn line(&mut self, number: usize, line: &str, report: &mut Report) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        let Some((word, value)) = line::pair(line) else {
            return report.error(number, format!("`{}` is not `key: value`", shown(line)));
        };
        let Some(key) = Key::read(word) else {
            return report.warn(number, format!("unknown key `{}`: it is not read", shown(word)));
        };
        if let Some(first) = self.seen.get(&key) {
            return report.error(number, format!("`{word}` stands in line {first} already"));
        }
        self.seen.insert(key, number);
        if value.is_empty() {
            return report.error(number, format!("`{word}` is empty"));
        }
        match key {
            Key::Surfaces => self.surfaces(number, value, report),
            Key::Acceptance => self.acceptance = command(number, word, value, report),
            Key::E2e => self.e2e = command(number, word, value, report),
            Key::AcceptanceFiles => self.files(number, value, report),
            Key::ConvergenceN => self.convergence_n(number, value, report),
            Key::MutationTesting => self.mutation_testing = switch(number, word, value, report),
            Key::ConfidenceCalibration => self.confidence_calibration = switch(number, word, value, report),
            Key::HonestyAuditPeer => match PeerName::new(value) {
                Ok(name) => self.honesty_audit_peer = Some(name),
                Err(error) => report.error(number, error.to_string()),
            },
        }
    }

    fn surfaces(&mut self, number: usize, value: &str, report: &mut Report) {
        let mut named = 0_usize;
        for word in line::list(value).flat_map(str::split_whitespace) {
            named += 1;
            match Surface::ALL.into_iter().find(|surface| surface.word() == word) {
                Some(known) if self.surfaces.contains(&known) => {}
                Some(new) => self.surfaces.push(new),
                None => {
                    let message = format!("`{}` is not a surface: `cli`, `web`, `lib` or `gui`", shown(word));
                    report.error(number, message);
                }
            }
        }
        if named == 0 {
            report.error(number, "`surfaces` names none: `cli`, `web`, `lib` or `gui`");
        }
    }

    fn files(&mut self, number: usize, value: &str, report: &mut Report) {
        for glob in line::list(value) {
            if line::outside(glob) {
                let message = format!(
                    "`{}`: globs are relative to the top of the repository, without `..`",
                    shown(glob)
                );
                report.error(number, message);
            }
            self.acceptance_files.push(glob.to_owned());
        }
    }

    fn convergence_n(&mut self, number: usize, value: &str, report: &mut Report) {
        let usual = Meta::CONVERGENCE_N;
        let negative =
            value.strip_prefix('-').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        match value.parse::<u32>() {
            Ok(n) if n > 0 => self.convergence_n = Some(n),
            Ok(_) => report.warn(number, format!("`convergence_n` is at least 1; {usual} holds")),
            Err(_) if negative => {
                report.warn(number, format!("`convergence_n` is not negative; {usual} holds"));
            }
            Err(_) => report.error(number, format!("`convergence_n` is not a number: `{}`", shown(value))),
        }
    }

    /// The whole section, which begins at `line`, and whether steps say how sure their authors are, if that is known.
    pub(super) fn finish(self, line: usize, report: &mut Report) -> (Option<Meta>, Option<bool>) {
        let Self {
            seen,
            surfaces,
            acceptance,
            e2e,
            acceptance_files,
            convergence_n,
            mutation_testing,
            confidence_calibration,
            honesty_audit_peer,
        } = self;
        if !seen.contains_key(&Key::Surfaces) {
            report.error(line, "`surfaces` is missing: a list of `cli`, `web`, `lib`, `gui`");
        }
        if !seen.contains_key(&Key::Acceptance) {
            report.error(line, "`acceptance` is missing: the command that passes when the feature is there");
        }
        let shown_to_people = surfaces.iter().find(|surface| matches!(surface, Surface::Web | Surface::Gui));
        if let Some(surface) = shown_to_people
            && !seen.contains_key(&Key::E2e)
        {
            let at = seen.get(&Key::Surfaces).copied().unwrap_or(line);
            let message = format!(
                "`e2e` is missing: with `{}` there is a command that tries it as a user does",
                surface.word()
            );
            report.error(at, message);
        }
        let meta = acceptance.map(|acceptance| Meta {
            surfaces,
            acceptance,
            e2e,
            acceptance_files,
            convergence_n: convergence_n.unwrap_or(Meta::CONVERGENCE_N),
            mutation_testing,
            confidence_calibration,
            honesty_audit_peer,
        });
        (meta, Some(confidence_calibration))
    }
}

/// A command as it is handed to a shell.
pub(super) fn command(number: usize, word: &str, value: &str, report: &mut Report) -> Option<String> {
    if value.is_empty() {
        report.error(number, format!("`{word}` is empty"));
        return None;
    }
    if line::is_quoted(value) {
        let message = format!("`{word}`: the quotes are part of the command, so it is one word to the shell");
        report.warn(number, message);
    }
    Some(value.to_owned())
}

/// A switch; what is neither on nor off is an error.
pub(super) fn switch(number: usize, word: &str, value: &str, report: &mut Report) -> bool {
    line::switch(value).unwrap_or_else(|| {
        report.error(number, format!("`{word}` is `true` or `false`, not `{}`", shown(value)));
        false
    })
}
