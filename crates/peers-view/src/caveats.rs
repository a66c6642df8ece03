//! What an operator hears at the moment when a run's work is taken home.

use peers_model::outcome::StopReason;
use peers_store::runs::RunRecord;
use peers_sys::term;
use serde::Serialize;

use crate::advice::Spelling;
use crate::closing;
use crate::diagnostic::stop_detail;
use crate::loopview::LoopView;
use crate::markdown::{Document, code};

/// Terminal cells of one line.
const LINE: usize = 300;

/// What stands against a run's work, beside the gates that are asked when it is landed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Caveats {
    /// The run ended `complete`.
    pub complete: bool,
    /// How it ended otherwise. Untrusted text.
    pub ended: Option<String>,
    /// What was missing for `complete`. Untrusted text.
    pub missing: Vec<String>,
    /// What must not be overlooked. Untrusted text.
    pub look_at: Vec<String>,
}

impl Caveats {
    /// Of the run `record`, which was the last one to work on its branch. What was missing is known of
    /// the newest run alone.
    #[must_use]
    pub fn of(view: &LoopView, record: &RunRecord) -> Self {
        let complete = record.reason == Some(StopReason::Complete);
        let ended = match &record.reason {
            Some(StopReason::Complete) => None,
            None => Some("it was killed or lost".to_owned()),
            Some(reason) if record.detail.is_empty() => Some(reason.to_string()),
            Some(reason) => Some(format!("{reason}: {}", stop_detail(Some(reason), &record.detail))),
        };
        let newest = view.run.value().is_some_and(|run| run.run_id == record.run_id);
        let missing = if complete || !newest { Vec::new() } else { closing::missing(view) };
        Self { complete, ended, missing, look_at: closing::notable(view) }
    }

    /// For people; nothing where nothing stands against it.
    #[must_use]
    pub fn lines(&self, spelling: &Spelling) -> Vec<String> {
        let Self { complete: _, ended, missing, look_at } = self;
        let ended = ended.iter().map(|how| format!("warning: this run did not end complete: {how}"));
        let lines =
            ended.chain(closing::missing_lines(missing, spelling)).chain(closing::notable_lines(look_at));
        lines.map(|line| term::line(&line, LINE)).collect()
    }

    /// The same for the body of a pull request; foreign texts stand in code spans.
    #[must_use]
    pub fn markdown(&self) -> String {
        let Self { complete: _, ended, missing, look_at } = self;
        let mut doc = Document::default();
        if let Some(how) = ended {
            doc.paragraph(&format!("**This run did not end complete**: {}", code(how, LINE)));
        }
        for (title, rows) in
            [("Missing for `complete`:", missing), ("Look at this before you trust the result:", look_at)]
        {
            if !rows.is_empty() {
                doc.paragraph(title);
            }
            for row in rows {
                doc.item(&code(row, LINE));
            }
        }
        doc.finish().trim_start().to_owned()
    }
}
