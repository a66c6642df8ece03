//! Tables of what is a plan and what is none.

use peers_model::{PeerName, limits};

use super::{LINE, Mark, Meta, PROBLEMS, Parsed, Plan, STEPS, StepId, Surface, parse};

const META: &str = "surfaces: [cli]\nacceptance: cargo test --test export\n";
const STEP: &str = "- [ ] [STEP-1] Serialise rows\n  - touches: src/export.rs\n";

fn text(meta: &str, steps: &str) -> String {
    format!("# Feature: CSV export\n## Meta\n{meta}## Steps\n{steps}")
}

fn good(text: &str) -> Plan {
    let Parsed { plan, errors, warnings } = parse(text.as_bytes());
    assert_eq!((errors, warnings), (vec![], vec![]), "{text}");
    plan.unwrap()
}

fn lines(problems: &[super::Problem]) -> Vec<String> {
    problems.iter().map(|problem| format!("{}: {}", problem.line, problem.message)).collect()
}

/// All errors of a text that is no plan, and nothing else.
fn bad(text: &str) -> Vec<String> {
    let Parsed { plan, errors, warnings } = parse(text.as_bytes());
    assert_eq!((plan, warnings), (None, vec![]), "{text}");
    lines(&errors)
}

/// The warnings of a text that is a plan.
fn doubts(text: &str) -> Vec<String> {
    let Parsed { plan, errors, warnings } = parse(text.as_bytes());
    assert_eq!(errors, vec![], "{text}");
    assert!(plan.is_some());
    lines(&warnings)
}

fn step(number: u32) -> StepId {
    StepId::new(number).unwrap()
}

#[test]
fn a_plan_says_what_its_lines_say() {
    let plan = good(
        "\n# Feature: CSV export\n\nProse.\n\n## Architecture\n- one part\n## Meta\n# a comment: here\n\
         surfaces: [cli, lib]\nacceptance: cargo test # not a comment\nacceptance_files: tests/*.rs, [a]/b\n\
         convergence_n: 3\nmutation_testing: Yes\nconfidence_calibration: on\nhonesty_audit_peer: cy\n\
         e2e: sh e2e.sh\n## Steps\nProse of STEP-1.\n- [x] [STEP-1] Serialise rows (0123abc)\n  \
         - touches: src/export.rs, tests/export.rs\n  - confidence: 4/5\n    continued prose\n  - accept: true && x: y\n\
         - [ ] [STEP-2] Add --csv flag (now)\n  - touches: [src/cli.rs, app/[id]/page.tsx]\n  - depends: [STEP-1]\n  \
         - rationale: because: so\n  - notes: n\n  - pure_refactor: 1\n## Notes\n- [ ] [STEP-9] ignored\n",
    );
    let (first, second) = (&plan.steps[0], &plan.steps[1]);
    assert_eq!(plan.title, "Feature: CSV export");
    assert_eq!(
        plan.meta,
        Meta {
            surfaces: vec![Surface::Cli, Surface::Lib],
            acceptance: "cargo test # not a comment".to_owned(),
            e2e: Some("sh e2e.sh".to_owned()),
            acceptance_files: vec!["tests/*.rs".to_owned(), "[a]/b".to_owned()],
            convergence_n: 3,
            mutation_testing: true,
            confidence_calibration: true,
            honesty_audit_peer: Some(PeerName::new("cy").unwrap()),
        }
    );
    assert_eq!((first.id, first.mark, first.line), (step(1), Mark::Done, 20));
    assert_eq!((first.text.as_str(), first.sha.as_deref()), ("Serialise rows", Some("0123abc")));
    assert_eq!(first.touches, ["src/export.rs", "tests/export.rs"]);
    assert_eq!((first.confidence, first.accept.as_deref()), (Some(4), Some("true && x: y")));
    assert_eq!((second.text.as_str(), second.sha.as_deref()), ("Add --csv flag (now)", None));
    assert_eq!(second.touches, ["src/cli.rs", "app/[id]/page.tsx"]);
    assert_eq!((second.depends.clone(), second.pure_refactor), (vec![step(1)], true));
    assert_eq!((second.rationale.as_deref(), second.notes.as_deref()), (Some("because: so"), Some("n")));
}

#[test]
fn a_plan_for_machines_has_the_documented_names() {
    let plan = good(&text(META, "- [PARTIAL] [STEP-1] a (0123abc)\n  - touches: b\n"));
    assert_eq!(
        serde_json::to_value(&plan).unwrap(),
        serde_json::json!({
            "title": "Feature: CSV export",
            "meta": {
                "surfaces": ["cli"], "acceptance": "cargo test --test export", "acceptance_files": [],
                "convergence_n": 5, "mutation_testing": false, "confidence_calibration": false,
            },
            "steps": [{
                "id": "STEP-1", "mark": "partial", "text": "a", "sha": "0123abc", "touches": ["b"], "depends": [],
                "trivial_step": false, "pure_documentation": false, "pure_refactor": false, "line": 6,
            }],
        })
    );
}

#[test]
fn row_39_what_is_no_plan_is_refused_with_its_line() {
    let no_e2e = "`e2e` is missing: with `web` there is a command that tries it as a user does";
    let no_files =
        "STEP-1 says no files: `- touches: a, b`, unless it is `trivial_step` or `pure_documentation`";
    let surfaces = "`cli`, `web`, `lib` or `gui`";
    let two = |second: &str| format!("{STEP}{second}  - touches: b\n");
    let rows = [
        (
            text("surfaces: cli\n", STEP),
            "2: `acceptance` is missing: the command that passes when the feature is there".to_owned(),
        ),
        (
            text("acceptance: a\n", STEP),
            "2: `surfaces` is missing: a list of `cli`, `web`, `lib`, `gui`".to_owned(),
        ),
        (text("acceptance: a\nsurfaces: [weeb]\n", STEP), format!("4: `weeb` is not a surface: {surfaces}")),
        (text("acceptance: a\nsurfaces: []\n", STEP), format!("4: `surfaces` names none: {surfaces}")),
        (text("acceptance: a\nsurfaces:\n", STEP), "4: `surfaces` is empty".to_owned()),
        (text("acceptance:\nsurfaces: cli\n", STEP), "3: `acceptance` is empty".to_owned()),
        (text("acceptance: a\nsurfaces: [web]\n", STEP), format!("4: {no_e2e}")),
        (
            text(META, &two("- [ ] [STEP-3] x\n")),
            "8: no STEP-2: ids begin at 1 and leave nothing out".to_owned(),
        ),
        (
            text(META, "- [ ] [STEP-4] x\n  - touches: b\n"),
            "6: no STEP-1 to STEP-3: ids begin at 1 and leave nothing out".to_owned(),
        ),
        (text(META, &two("- [ ] [STEP-1] x\n")), "8: STEP-1 stands in line 6 already".to_owned()),
        (
            text(META, &two("- [ ] [STEP-2] x\n  - depends: [STEP-7]\n")),
            "9: STEP-2 depends on STEP-7, which does not exist".to_owned(),
        ),
        (
            text(META, &two("- [ ] [STEP-2] x\n  - depends: STEP-2\n")),
            "9: STEP-2 depends on itself".to_owned(),
        ),
        (text(META, "- [ ] [STEP-1] x\n"), format!("6: {no_files}")),
        (text(META, "- [ ] [STEP-1] x\n  - touches: []\n"), format!("7: {no_files}")),
        (format!("{}## Meta\n", text(META, STEP)), "8: `## Meta` stands in line 2 already".to_owned()),
        (
            format!("{}## Notes\n## Notes\n", text(META, STEP)),
            "9: `## Notes` stands in line 8 already".to_owned(),
        ),
        (text(META, ""), "5: no step: write `- [ ] [STEP-1] what to do`".to_owned()),
        (format!("# T\n## Steps\n{STEP}"), "1: no section `## Meta`".to_owned()),
        (format!("# T\n## Meta\n{META}"), "1: no section `## Steps`".to_owned()),
    ];
    for (text, error) in rows {
        assert_eq!(bad(&text), [error], "{text}");
    }
}

#[test]
fn row_39_bytes_that_are_no_text_and_a_text_without_end_are_refused() {
    let mut bytes = text(META, STEP).into_bytes();
    bytes.splice(2..3, [0xff]);
    let parsed = parse(&bytes);
    assert_eq!((lines(&parsed.errors), parsed.plan), (vec!["1: not UTF-8".to_owned()], None));

    let limit = usize::try_from(limits::CONFIG).unwrap();
    let full = format!("{}## Notes\n", text(META, STEP));
    let filled = |len: usize| format!("{full}{}", "x".repeat(len - full.len()));
    good(&filled(limit));
    let error = format!("1: a plan has at most {limit} bytes; this one has {}", limit + 1);
    assert_eq!(bad(&filled(limit + 1)), [error]);
}

#[test]
fn row_39_a_circle_is_told_with_its_way() {
    let steps: String = [(1, "2"), (2, "4"), (3, "1"), (4, "5, STEP-3"), (5, "4"), (6, "1"), (7, "")]
        .into_iter()
        .map(|(id, before)| {
            let before = if before.is_empty() { String::new() } else { format!("STEP-{before}") };
            format!("- [ ] [STEP-{id}] s\n  - touches: a\n  - depends: [{before}]\n")
        })
        .collect::<Vec<_>>()
        .concat();
    let told = "15: steps wait for each other: STEP-4 -> STEP-5 -> STEP-4";
    assert_eq!(bad(&text(META, &steps)), [told]);
    let steps = steps.replace("STEP-5, ", "");
    let told = "6: steps wait for each other: STEP-1 -> STEP-2 -> STEP-4 -> STEP-3 -> STEP-1";
    assert_eq!(bad(&text(META, &steps)), [told]);
    let behind_a_free_one = "- [ ] [STEP-1] s\n  - touches: a\n  - depends: STEP-3, STEP-2\n\
         - [ ] [STEP-2] s\n  - touches: a\n  - depends: STEP-3, STEP-1\n- [ ] [STEP-3] s\n  - touches: a\n";
    let told = "6: steps wait for each other: STEP-1 -> STEP-2 -> STEP-1";
    assert_eq!(bad(&text(META, behind_a_free_one)), [told]);
}

#[test]
fn row_40_exemptions_and_each_mark_are_accepted() {
    for exempt in ["trivial_step: true", "trivial: yes", "pure_documentation: ON"] {
        let plan = good(&text(META, &format!("- [ ] [STEP-1] x\n  - {exempt}\n")));
        let step = &plan.steps[0];
        assert_eq!(step.trivial_step, exempt.starts_with("trivial"), "{exempt}");
        assert_ne!(step.trivial_step, step.pure_documentation, "{exempt}");
    }
    let marks = [
        (" ", Mark::Open),
        ("x", Mark::Done),
        ("X", Mark::Done),
        ("PARTIAL", Mark::Partial),
        ("BLOCKED", Mark::Blocked),
        ("BLOCKED-ACK", Mark::BlockedAck),
    ];
    for (written, mark) in marks {
        let plan = good(&text(META, &STEP.replace("[ ]", &format!("[{written}]"))));
        assert_eq!(plan.steps[0].mark, mark, "{written}");
    }
    good(&text(META, "- [ ] [STEP-2] x\n  - touches: b\n- [ ] [STEP-1] x\n  - touches: b\n"));
    good(&format!("\u{feff}{}", text(META, STEP).replace('\n', "\r\n")));
}

#[test]
fn a_line_that_is_nearly_a_step_is_an_error_and_not_prose() {
    for line in [
        "- [] [STEP-1] x",
        "- [done] [STEP-1] x",
        "- [partial] [STEP-1] x",
        "- [ ] STEP-1 x",
        "- [ ] [STEP-01] x",
        "- [ ] [STEP-0] x",
        "- [ ] [STEP-5000000000] x",
        "- [ ] [STEP-1]",
        "- [ ] [STEP-1] (0123abc)",
        "- [ ] [STEP-1]x",
        "- [ ]  [STEP-1] x",
        "-  [ ] [STEP-1] x",
        "-[ ] [STEP-1] x",
        "* [ ] [STEP-1] x",
        "+ [ ] [STEP-1] x",
        " - [ ] [STEP-1] x",
        "- [ ] [step-1] x",
        "- what to do",
        "- [ ] [STEP-1]\tx",
        "\t- [ ] [STEP-1] x",
    ] {
        let parsed = parse(text(META, &format!("{line}\n  - touches: a\n")).as_bytes());
        assert!(parsed.plan.is_none(), "{line}");
        assert_eq!(parsed.errors[0].line, 6, "{line}: {:?}", parsed.errors);
        let about = parsed.errors.iter().all(|error| !error.message.contains("leave nothing out"));
        assert!(about, "{line}: {:?}", parsed.errors);
    }
}

#[test]
fn what_is_written_wrongly_is_told_all_at_once() {
    let told = bad(
        "Feature\n## Meta\n- surfaces: [cli]\nacceptance: a\nacceptance: b\nconvergence_n: many\n\
         mutation_testing: maybe\nhonesty_audit_peer: a b\nacceptance_files: ../x\n## Steps\n  - touches: a\n\
         - [ ] [STEP-1] x\n  - touches: a\n  - touches: b\n  - trivial: 2\n  - confidence: 6/5\n  - accept:\n  - depends: x\n",
    );
    assert_eq!(
        told,
        [
            "1: the first line is the name of the feature: write `# NAME`",
            "2: `surfaces` is missing: a list of `cli`, `web`, `lib`, `gui`",
            "3: `- surfaces: [cli]` is not `key: value`",
            "5: `acceptance` stands in line 4 already",
            "6: `convergence_n` is not a number: `many`",
            "7: `mutation_testing` is `true` or `false`, not `maybe`",
            "8: `a b` is not a valid peer name: a letter or digit, then at most 31 letters, digits, `_` or `-`",
            "9: `../x`: globs are relative to the top of the repository, without `..`",
            "11: `touches` stands above the first step",
            "14: STEP-1 has `touches` in line 13 already",
            "15: `trivial` is `true` or `false`, not `2`",
            "16: `confidence` is `N/5`, not `6/5`",
            "17: `accept` is empty",
            "18: `x` is not a step: `depends: [STEP-1, STEP-2]`",
        ]
    );
}

#[test]
fn what_is_hardly_meant_that_way_is_a_warning() {
    let rows = [
        (text(&format!("{META}colour: red\n"), STEP), "5: unknown key `colour`: it is not read"),
        (text(META, &format!("{STEP}  - colour: red\n")), "8: unknown key `colour`: it is not read"),
        (text(META, &format!("{STEP}  - a word\n")), "8: `a word` is not `key: value`: it is not read"),
        (text(META, &format!("{STEP}  accept: true\n")), "8: this is not read: write `- accept: ...`"),
        (
            text(META, &format!("{STEP}  * accept: true\n")),
            "8: `* accept: true` is not read: write `- key: value`",
        ),
        (
            text(META, &format!("{STEP}1. [ ] [STEP-2] x\n")),
            "8: this names a step and is none: write `- [ ] [STEP-1] what to do`",
        ),
        (text(&format!("{META}convergence_n: -3\n"), STEP), "5: `convergence_n` is not negative; 5 holds"),
        (text(&format!("{META}convergence_n: 0\n"), STEP), "5: `convergence_n` is at least 1; 5 holds"),
        (
            text("surfaces: cli\nacceptance: 'cargo test'\n", STEP),
            "4: `acceptance`: the quotes are part of the command, so it is one word to the shell",
        ),
        (
            text(META, &format!("{STEP}  - confidence: 3/5\n")),
            "8: `confidence` is read with `confidence_calibration: true` only",
        ),
        (
            text(META, "- [ ] [STEP-1] x\n  - touches: a, /etc/passwd\n"),
            "7: `/etc/passwd`: files are relative to the top of the repository, without `..`",
        ),
        (format!("{}##Notes\n", text(META, STEP)), "8: no section: write `## NAME`, with a blank"),
        (
            format!("{}## meta\n", text(META, STEP)),
            "8: this is not `## Meta`: names of sections are written like this",
        ),
    ];
    for (text, warning) in rows {
        assert_eq!(doubts(&text), [warning], "{text}");
    }
    let plan = parse(text(&format!("{META}convergence_n: -3\n"), STEP).as_bytes()).plan.unwrap();
    assert_eq!(plan.meta.convergence_n, 5);
}

#[test]
fn what_is_told_is_bounded_and_moves_no_cursor() {
    let many = "\u{1b}[2J nothing\n".repeat(5000);
    let parsed = parse(text(&many, STEP).as_bytes());
    assert_eq!(parsed.errors.len(), PROBLEMS + 1);
    assert_eq!(parsed.errors.last().unwrap().message, "and 9802 more of these");
    assert!(parsed.errors.iter().all(|error| !error.message.contains('\u{1b}')));

    let long = bad(&text(META, &format!("- [ ] [STEP-1] {}\n", "x".repeat(LINE))));
    assert_eq!(long[1], "6: a line has at most 16384 bytes; this one has 16399");
    let word = bad(&text(&format!("{META}mutation_testing: {}\n", "é".repeat(400)), STEP));
    assert!(word[0].len() < 200, "{}", word[0]);

    let steps = |count: usize| -> String {
        (1..=count).map(|id| format!("- [ ] [STEP-{id}] x\n  - touches: a\n")).collect::<Vec<_>>().concat()
    };
    assert_eq!(good(&text(META, &steps(STEPS))).steps.len(), STEPS);
    assert_eq!(bad(&text(META, &steps(STEPS + 3))), ["2006: a plan has at most 1000 steps"]);
}
