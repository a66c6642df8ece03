//! How a turn's process ended, in the two dimensions of [`peers_model::outcome`].
//!
//! The one-word label of logs follows from them ([`peers_model::outcome::classification`]). A
//! structured failure outranks a pattern, and a structured success outranks a pattern of an earlier
//! line: free text is only a guess.

use peers_model::outcome::{ApiClass, ExitClass, Matched, classification};

use crate::event::{FailureKind, Retry, ToolReport};
use crate::omens::Omen;
use crate::patterns::{HitClass, PatternHit};
use crate::reset::words;

impl From<FailureKind> for ApiClass {
    fn from(kind: FailureKind) -> Self {
        match kind {
            FailureKind::Auth => Self::Auth,
            FailureKind::Quota => Self::Quota,
            FailureKind::UsageCap { .. } => Self::UsageCap,
            FailureKind::RateLimit { .. } | FailureKind::Overload => Self::Transient,
            FailureKind::Other => Self::Other,
        }
    }
}

/// When a pattern matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HitTime {
    /// While the child ran.
    InLoop,
    /// In what was read after it had ended.
    PostJoin,
}

/// The facts of one turn's process.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// How the process ended.
    pub exit: ExitClass,
    /// What its stream said.
    pub report: &'a ToolReport,
    /// The decisive pattern hit, if any.
    pub hit: Option<(&'a PatternHit, HitTime)>,
    /// The sign that going on was of no use, if there was one.
    pub omen: Option<&'a Omen>,
}

/// The verdict over [`Facts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// How the process ended. A pattern found afterwards turns it into [`ExitClass::Pattern`].
    pub exit: ExitClass,
    /// What the service said.
    pub api: ApiClass,
    /// The failure in full, for waits and reset times.
    pub kind: Option<FailureKind>,
    /// What led here, when it was not the exit alone. Its snippet is long and may hold secrets: for
    /// [`crate::brief`].
    pub matched: Option<Matched>,
}

impl Classified {
    /// The one word of the log.
    #[must_use]
    pub fn label(&self) -> &'static str {
        classification(self.exit, self.api)
    }
}

/// Classifies one turn's process.
#[must_use]
pub fn classify(facts: Facts<'_>) -> Classified {
    let Facts { exit, report, hit, omen } = facts;
    let quiet = Classified { exit, api: ApiClass::None, kind: None, matched: None };
    if exit == ExitClass::SpawnFail {
        return quiet;
    }
    if let Some(failure) = &report.failure {
        let source = if failure.kind.transient() { "structured-transient" } else { "structured" };
        let matched = Matched {
            pattern: failure.kind.as_str().to_owned(),
            key: None,
            snippet: failure.text.clone(),
            source: source.to_owned(),
        };
        return Classified {
            exit,
            api: failure.kind.into(),
            kind: Some(failure.kind),
            matched: Some(matched),
        };
    }
    // It was ended for what its stream told, or while it waited for what its stream told: that is why.
    let told = match exit {
        ExitClass::Hopeless => omen.map(|omen| (omen.kind, omen.text.clone())),
        ExitClass::Idle | ExitClass::Absolute => {
            let still = |Retry { attempt, of, text, .. }: &Retry| match attempt {
                0 => format!("still retrying: {text}"),
                attempt => format!("still retrying ({attempt} of {of}): {text}"),
            };
            report.retrying.as_ref().map(|retry| (retry.kind, words(&still(retry))))
        }
        _ => None,
    };
    if let Some((kind, text)) = told {
        let source = if kind.transient() { "structured-transient" } else { "structured" };
        let matched = Matched {
            pattern: kind.as_str().to_owned(),
            key: None,
            snippet: text,
            source: source.to_owned(),
        };
        return Classified { exit, api: kind.into(), kind: Some(kind), matched: Some(matched) };
    }
    let ended_well = exit == ExitClass::Ok && report.terminal.is_some_and(|terminal| terminal.ok);
    let Some((hit, time)) = hit.filter(|_| !ended_well && exit != ExitClass::Interrupted) else {
        return quiet;
    };
    let kind = judge(hit);
    let source = match time {
        HitTime::InLoop => "in-loop",
        HitTime::PostJoin => "post-join",
    };
    let matched = Matched {
        pattern: hit.pattern.clone(),
        key: Some(hit.key.clone()),
        snippet: hit.snippet.clone(),
        source: source.to_owned(),
    };
    Classified { exit: ExitClass::Pattern, api: kind.into(), kind: Some(kind), matched: Some(matched) }
}

/// The operator's list decides whether a person must act; the words only tell the kind.
fn judge(hit: &PatternHit) -> FailureKind {
    let kind = hit.kind;
    if let FailureKind::UsageCap { .. } = kind {
        // Nobody has to act: it passes.
        return kind;
    }
    match (hit.class, kind.halts()) {
        (HitClass::Halt, true) | (HitClass::Error, false) => kind,
        (HitClass::Halt, false) => FailureKind::Auth,
        (HitClass::Error, true) => FailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Failure, Stream, Terminal};
    use crate::signals::judge_text;

    const EXITS: [ExitClass; 8] = [
        ExitClass::SpawnFail,
        ExitClass::Ok,
        ExitClass::Nonzero,
        ExitClass::Signal,
        ExitClass::Idle,
        ExitClass::Absolute,
        ExitClass::Pattern,
        ExitClass::Interrupted,
    ];

    fn failed(kind: FailureKind) -> ToolReport {
        ToolReport {
            terminal: Some(Terminal { ok: false }),
            failure: Some(Failure { kind, text: "why".to_owned(), structured: true }),
            ..ToolReport::default()
        }
    }

    fn hit(class: HitClass, snippet: &str) -> PatternHit {
        PatternHit {
            class,
            pattern: "p".to_owned(),
            key: "health.error_patterns[0]".to_owned(),
            snippet: snippet.to_owned(),
            kind: judge_text(snippet),
            stream: Stream::Stderr,
        }
    }

    fn label(
        exit: ExitClass,
        report: &ToolReport,
        hit: Option<(&PatternHit, HitTime)>,
    ) -> (&'static str, ApiClass) {
        let verdict = classify(Facts { exit, report, hit, omen: None });
        (verdict.label(), verdict.api)
    }

    #[test]
    fn without_signals_the_exit_alone_decides() {
        let quiet = ToolReport::default();
        let labels: Vec<_> = EXITS.iter().map(|&exit| label(exit, &quiet, None).0).collect();
        let want = [
            "process-fail",
            "success",
            "process-fail",
            "process-fail",
            "idle-timeout",
            "absolute-timeout",
            "api-error",
            "interrupted",
        ];
        assert_eq!(labels, want);
    }

    #[test]
    fn a_structured_halt_overrides_every_exit_but_a_stop() {
        let report = failed(FailureKind::UsageCap { resets_at: None });
        for exit in [ExitClass::Ok, ExitClass::Nonzero, ExitClass::Signal, ExitClass::Idle] {
            assert_eq!(label(exit, &report, None), ("usage-cap", ApiClass::UsageCap));
        }
        assert_eq!(label(ExitClass::Interrupted, &report, None).0, "interrupted");
    }

    #[test]
    fn a_transient_failure_never_downgrades_a_deadline() {
        let report = failed(FailureKind::Overload);
        assert_eq!(label(ExitClass::Nonzero, &report, None).0, "rate-limited");
        assert_eq!(label(ExitClass::Ok, &report, None).0, "rate-limited");
        assert_eq!(label(ExitClass::Idle, &report, None).0, "idle-timeout");
        assert_eq!(label(ExitClass::Absolute, &report, None).0, "absolute-timeout");
    }

    #[test]
    fn a_structured_failure_is_no_success_even_with_code_zero() {
        assert_eq!(label(ExitClass::Ok, &failed(FailureKind::Other), None).0, "api-error");
    }

    #[test]
    fn a_pattern_counts_where_no_terminal_event_speaks() {
        let quiet = ToolReport::default();
        let limit = hit(HitClass::Error, "ERROR rate limit");
        for (exit, time, source) in [
            (ExitClass::Pattern, HitTime::InLoop, "in-loop"),
            (ExitClass::Ok, HitTime::PostJoin, "post-join"),
        ] {
            let verdict = classify(Facts { exit, report: &quiet, hit: Some((&limit, time)), omen: None });
            assert_eq!((verdict.label(), verdict.api), ("api-error", ApiClass::Transient));
            assert_eq!(verdict.matched.map(|matched| matched.source).as_deref(), Some(source));
        }
    }

    #[test]
    fn the_operators_list_decides_whether_a_person_must_act() {
        let quiet = ToolReport::default();
        let api =
            |class, text: &str| label(ExitClass::Ok, &quiet, Some((&hit(class, text), HitTime::PostJoin))).1;
        assert_eq!(api(HitClass::Halt, "ERROR usage limit reached"), ApiClass::UsageCap);
        assert_eq!(api(HitClass::Halt, "ERROR quota exhausted"), ApiClass::Quota);
        assert_eq!(api(HitClass::Halt, "the licence server is gone"), ApiClass::Auth);
        assert_eq!(api(HitClass::Error, "ERROR usage limit reached"), ApiClass::UsageCap);
        assert_eq!(api(HitClass::Error, "ERROR quota exhausted"), ApiClass::Other);
    }

    #[test]
    fn a_stream_that_ended_well_outranks_a_pattern() {
        let done = ToolReport { terminal: Some(Terminal { ok: true }), ..ToolReport::default() };
        let halt = hit(HitClass::Halt, "ERROR quota exhausted");
        assert_eq!(label(ExitClass::Ok, &done, Some((&halt, HitTime::PostJoin))).0, "success");
        assert_eq!(label(ExitClass::Nonzero, &done, Some((&halt, HitTime::PostJoin))).0, "api-error");
    }

    #[test]
    fn who_was_ended_while_its_service_refused_it_was_refused() {
        let retry = |kind| Retry { attempt: 2, of: 5, delay: None, kind, text: "no".to_owned() };
        let limit = FailureKind::RateLimit { retry_after: None };
        let waiting = ToolReport { retrying: Some(retry(limit)), ..ToolReport::default() };
        let verdict = classify(Facts { exit: ExitClass::Idle, report: &waiting, hit: None, omen: None });
        assert_eq!((verdict.label(), verdict.api), ("idle-timeout", ApiClass::Transient));
        assert_eq!(verdict.matched.map(|m| m.snippet).as_deref(), Some("still retrying (2 of 5): no"));
        let untold = ToolReport {
            retrying: Some(Retry { attempt: 0, of: 0, ..retry(limit) }),
            ..ToolReport::default()
        };
        let verdict = classify(Facts { exit: ExitClass::Idle, report: &untold, hit: None, omen: None });
        assert_eq!(verdict.matched.map(|m| m.snippet).as_deref(), Some("still retrying: no"));
        // Whoever was ended for something else, or ended by itself, is judged by that.
        assert_eq!(label(ExitClass::Nonzero, &waiting, None), ("process-fail", ApiClass::None));
        let omen = Omen { kind: FailureKind::Auth, text: "twice in vain".to_owned() };
        let quiet = ToolReport::default();
        let verdict =
            classify(Facts { exit: ExitClass::Hopeless, report: &quiet, hit: None, omen: Some(&omen) });
        assert_eq!((verdict.label(), verdict.api), ("api-error", ApiClass::Auth));
        assert_eq!(verdict.matched.map(|m| m.snippet).as_deref(), Some("twice in vain"));
    }

    #[test]
    fn a_structured_failure_outranks_a_pattern() {
        let report = failed(FailureKind::RateLimit { retry_after: None });
        let halt = hit(HitClass::Halt, "ERROR usage limit reached");
        let got = label(ExitClass::Nonzero, &report, Some((&halt, HitTime::PostJoin)));
        assert_eq!(got, ("rate-limited", ApiClass::Transient));
    }
}
