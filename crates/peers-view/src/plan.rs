//! A plan as peers understands it.

use peers_core::plan::{Mark, Parsed, Plan, Step};

use crate::page::{Cell, Page, Tone, plain};

/// What a plan says, and below that all that is wrong with it; `name` is its file.
#[must_use]
pub fn plan_page(name: &str, parsed: &Parsed) -> Page {
    let Parsed { plan, errors, warnings } = parsed;
    let mut page = Page::new();
    if let Some(plan) = plan {
        understood(&mut page, plan);
    }
    for (word, tone, problems) in [("error", Tone::Bad, errors), ("warning", Tone::Care, warnings)] {
        for problem in problems {
            page.line(&[
                plain(format!("{name}:{}: ", problem.line)),
                Cell::new(tone, word),
                Cell::cut(Tone::Plain, format!(": {}", problem.message), 302),
            ]);
        }
    }
    page
}

fn understood(page: &mut Page, plan: &Plan) {
    let Plan { title, meta, steps } = plan;
    let surfaces: Vec<&str> = meta.surfaces.iter().map(|surface| surface.word()).collect();
    page.line(&[Cell::cut(Tone::Strong, title, 200)]);
    let mut row = |name: &str, value: &str| {
        page.line(&[plain(format!("  {name}: ")), Cell::cut(Tone::Plain, value, 200)]);
    };
    row("surfaces", &surfaces.join(", "));
    row("acceptance", &meta.acceptance);
    if let Some(e2e) = &meta.e2e {
        row("e2e", e2e);
    }
    if !meta.acceptance_files.is_empty() {
        row("acceptance files", &meta.acceptance_files.join(", "));
    }
    row("green ticks in a row", &meta.convergence_n.to_string());
    row("steps", &format!("{} ({} done)", steps.len(), plan.progress().done));
    for step in steps {
        let tone = match step.mark {
            Mark::Open => Tone::Plain,
            Mark::Done => Tone::Good,
            Mark::Partial => Tone::Care,
            Mark::Blocked | Mark::BlockedAck => Tone::Bad,
        };
        page.line(&[plain("  "), Cell::cut(tone, step_row(step), 300)]);
    }
}

fn step_row(step: &Step) -> String {
    let mut row = format!("[{}] {} {}", step.mark.written(), step.id, step.text);
    if !step.touches.is_empty() {
        row.push_str("; touches ");
        row.push_str(&step.touches.join(", "));
    }
    if !step.depends.is_empty() {
        let before: Vec<String> = step.depends.iter().map(ToString::to_string).collect();
        row.push_str("; after ");
        row.push_str(&before.join(", "));
    }
    row
}
