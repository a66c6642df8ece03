//! What holds for any plan, and for any text.

use std::fmt::Write as _;

use peers_model::PeerName;
use proptest::prelude::*;

use super::{Mark, Meta, Parsed, Plan, Step, StepId, Surface, parse};

fn step(number: u32) -> StepId {
    StepId::new(number).unwrap()
}

/// The plan as text, as this module would have it.
fn print(plan: &Plan) -> String {
    let Plan { title, meta, steps } = plan;
    let words: Vec<_> = meta.surfaces.iter().map(|surface| surface.word()).collect();
    let mut out =
        format!("# {title}\n## Meta\nsurfaces: [{}]\nacceptance: {}\n", words.join(", "), meta.acceptance);
    if let Some(e2e) = &meta.e2e {
        writeln!(out, "e2e: {e2e}").unwrap();
    }
    if !meta.acceptance_files.is_empty() {
        writeln!(out, "acceptance_files: [{}]", meta.acceptance_files.join(", ")).unwrap();
    }
    writeln!(out, "convergence_n: {}\nmutation_testing: {}", meta.convergence_n, meta.mutation_testing)
        .unwrap();
    writeln!(out, "confidence_calibration: {}", meta.confidence_calibration).unwrap();
    if let Some(peer) = &meta.honesty_audit_peer {
        writeln!(out, "honesty_audit_peer: {peer}").unwrap();
    }
    out.push_str("## Steps\n");
    for step in steps {
        write!(out, "- [{}] [{}] {}", step.mark.written(), step.id, step.text).unwrap();
        out.push_str(&step.sha.as_ref().map_or("\n".to_owned(), |sha| format!(" ({sha})\n")));
        let depends: Vec<_> = step.depends.iter().map(StepId::to_string).collect();
        let confidence = step.confidence.map(|n| format!("{n}/5"));
        let keys = [
            ("touches", Some(format!("[{}]", step.touches.join(", ")))),
            ("depends", Some(depends.join(", "))),
            ("trivial_step", Some(step.trivial_step.to_string())),
            ("pure_documentation", Some(step.pure_documentation.to_string())),
            ("pure_refactor", Some(step.pure_refactor.to_string())),
            ("confidence", confidence),
            ("rationale", step.rationale.clone()),
            ("notes", step.notes.clone()),
            ("accept", step.accept.clone()),
        ];
        for (key, value) in keys {
            if let Some(value) = value {
                writeln!(out, "  - {key}: {value}").unwrap();
            }
        }
    }
    out
}

fn words() -> impl Strategy<Value = String> {
    "[a-zA-Zé#:`-][ -'*-~é]{0,20}[a-zA-Zé]"
}

fn paths(least: usize) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(
        "[a-z*]{1,4}(/\\[[a-z]{1,4}\\])?(/[a-z*]{1,4}){0,2}|\\[[a-z]\\]/[a-z]\\[[a-z]\\]",
        least..4,
    )
}

fn one_meta() -> impl Strategy<Value = Meta> {
    let surfaces = proptest::sample::subsequence(Surface::ALL.to_vec(), 1..=4).prop_shuffle();
    let peer = proptest::option::of("[a-z]{1,8}");
    (surfaces, words(), words(), paths(0), 1_u32.., any::<(bool, bool)>(), peer).prop_map(
        |(surfaces, acceptance, e2e, acceptance_files, convergence_n, switches, peer)| Meta {
            e2e: surfaces.iter().any(|s| matches!(s, Surface::Web | Surface::Gui)).then_some(e2e),
            surfaces,
            acceptance,
            acceptance_files,
            convergence_n,
            mutation_testing: switches.0,
            confidence_calibration: switches.1,
            honesty_audit_peer: peer.map(|name| PeerName::new(name).unwrap()),
        },
    )
}

fn one_step() -> impl Strategy<Value = Step> {
    let sha = proptest::option::of("[0-9a-f]{7,40}");
    let option = || proptest::option::of(words());
    let exempt = any::<(bool, bool, bool)>();
    let mark = proptest::sample::select(Mark::ALL.to_vec());
    (mark, words(), sha, paths(1), proptest::option::of(0_u8..=5), option(), option(), option(), exempt)
        .prop_map(|(mark, text, sha, touches, confidence, rationale, notes, accept, exempt)| Step {
            id: step(1),
            mark,
            text,
            sha,
            touches,
            depends: Vec::new(),
            trivial_step: exempt.0,
            pure_documentation: exempt.1,
            pure_refactor: exempt.2,
            confidence,
            rationale,
            notes,
            accept,
            line: 0,
        })
}

/// A plan whose steps depend on steps of lower numbers.
fn one_plan() -> impl Strategy<Value = Plan> {
    let steps = proptest::collection::vec((one_step(), any::<u32>()), 1..6);
    (words(), one_meta(), steps).prop_map(|(title, meta, steps)| {
        let steps = (1_u32..).zip(steps).map(|(number, (one, mask))| {
            let depends = (1..number).filter(|other| mask >> other & 1 == 1).map(step).collect();
            Step { id: step(number), depends, ..one }
        });
        Plan { title, meta, steps: steps.collect() }
    })
}

/// Lines that are nearly those of a plan.
fn line_soup() -> impl Strategy<Value = String> {
    let parts = [
        "# T",
        "## Meta",
        "## Steps",
        "## ",
        "##",
        "surfaces: [cli, web]",
        "surfaces: ",
        "acceptance: a",
        "e2e:",
        "- [ ] [STEP-1] a",
        "- [x] [STEP-2] b (0123abc)",
        "- [",
        "] [STEP-",
        "  - touches: a",
        "  - depends: [STEP-2]",
        "  - depends: STEP-1",
        "  - trivial: y",
        "\t",
        "\r",
        " ",
        "\n",
        "\n",
        "\n",
        "[",
        "]",
        ":",
        "-",
        "é",
        "\u{feff}",
        "\u{1b}",
    ];
    proptest::collection::vec(proptest::sample::select(parts.to_vec()), 0..60)
        .prop_map(|parts| parts.concat())
}

fn check_total(bytes: &[u8]) {
    let Parsed { plan, errors, warnings } = parse(bytes);
    assert_eq!(plan.is_some(), errors.is_empty());
    let lines = bytes.split(|b| *b == b'\n').count();
    for problem in errors.iter().chain(&warnings) {
        assert!((1..=lines).contains(&problem.line), "{problem:?}");
        assert!(!problem.message.chars().any(char::is_control), "{problem:?}");
    }
    assert!(errors.is_sorted_by_key(|problem| problem.line));
}

proptest! {
    #[test]
    fn a_printed_plan_is_read_as_the_same(plan in one_plan()) {
        let text = print(&plan);
        let parsed = parse(text.as_bytes());
        prop_assert_eq!(&parsed.errors, &vec![], "{}", text);
        let mut read = parsed.plan.unwrap();
        for step in &mut read.steps {
            let begins = format!("- [{}] [{}]", step.mark.written(), step.id);
            prop_assert!(text.lines().nth(step.line - 1).unwrap().starts_with(&begins));
            step.line = 0;
        }
        prop_assert_eq!(read, plan, "{}", text);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in any::<Vec<u8>>()) {
        check_total(&bytes);
    }

    #[test]
    fn any_mix_of_lines_is_read_or_refused(text in line_soup()) {
        check_total(text.as_bytes());
    }
}
