//! Every rendering with every kind of row and with hostile text; SARIF and JUnit against their schemas.

use peers_model::verdict::{Judged, Place, TreeKey, Verdict};
use peers_model::{CommitId, GoalId, Timestamp, TreeId};
use serde_json::Value;
use uppsala::{XsdValidator, parse};

use super::*;

const SARIF: &str = include_str!("../../tests/schemas/sarif-2.1.0.schema.json");
const JUNIT: &str = include_str!("../../tests/schemas/junit-10.xsd");

fn source(line: u64) -> Source {
    Source { file: ".peers/goals.yaml", line }
}

fn row(name: &str, verdict: &Verdict) -> VerifyRow {
    VerifyRow::new(name, verdict, 1234, source(3))
}

fn fail(diagnostic: &str) -> Verdict {
    Verdict::Fail { diagnostic: diagnostic.to_owned() }
}

fn report(hard: Vec<VerifyRow>, extra: Vec<VerifyRow>) -> VerifyReport {
    VerifyReport {
        dir: "repo".to_owned(),
        version: "0.1.0",
        at: None,
        head: CommitId::new("1".repeat(40)).unwrap(),
        tree: TreeId::new("2".repeat(40)).unwrap(),
        dirty: true,
        pristine: false,
        allow_empty: false,
        digests: peers_model::record::Digests { goals: "a".repeat(64), config: "b".repeat(64) },
        accept_digest: "c".repeat(64),
        hard,
        extra,
        exempt: Vec::new(),
        dirtied: Ok(Vec::new()),
        rewritten: Vec::new(),
        unasked: Unasked::default(),
        recordless: Vec::new(),
        beside: false,
    }
}

/// One row of each kind, and commands of one name.
fn every() -> VerifyReport {
    let tails =
        "pass_when returned False; exit_code=1; stdout-tail='one\nsrc/a b.rs:7: no'; stderr-tail='two'";
    let mut skipped = row("skipped", &fail("needs tests-pass, which is red"));
    skipped.state = RowState::Skipped;
    let hard = vec![
        row("green", &Verdict::Pass),
        row("tests-pass", &fail(tails)),
        row("no-stubs", &fail("no-stubs: FAIL\n  src/x.rs:12: stub: todo!()\n  src/y.rs:1: stub: todo!()")),
        row(
            "slow",
            &Verdict::Timeout {
                diagnostic: "timeout; exit_code=unknown; stdout-tail=''; stderr-tail=''".into(),
            },
        ),
        row("lost", &Verdict::Error { diagnostic: "the exit was lost".into() }),
        skipped,
    ];
    let extra = vec![
        row("lint", &fail("exit code 2; untidy")),
        row("lint", &fail("exit code 2; untidy")),
        row("ok", &Verdict::Pass),
    ];
    report(hard, extra)
}

/// What output, names and paths can hold.
fn hostile() -> Vec<String> {
    vec![
        "]]>&\"'<script>alert(1)</script>--><!-- <![CDATA[".to_owned(),
        "a\u{0}b\u{1b}[31mred\u{1b}[0m\u{1b}]0;title\u{7}\u{8}\u{b}\u{c}\u{fffe}\u{ffff}\u{85}\u{202e}x"
            .to_owned(),
        "one\r\ntwo\n::error::forged\n##[error]forged\n%0A::warning::x".to_owned(),
        "| a | b |\n|---|---|\n# head `code` [l](http://x) *b* ~~s~~ \\| \\".to_owned(),
        "'; stderr-tail='; stdout-tail='x".to_owned(),
        "../../etc/passwd:1: x\n/etc/shadow:2: x\n\u{1f600}.rs:3: ünï".to_owned(),
        "long ".repeat(210_000),
        String::new(),
    ]
}

fn all_hostile() -> VerifyReport {
    let hard = hostile().iter().map(|text| row(text, &fail(text))).collect();
    let extra = hostile()
        .iter()
        .map(|text| row("x", &fail(&format!("why; stdout-tail='{text}'; stderr-tail='{text}'"))))
        .collect();
    let mut report = report(hard, extra);
    report.dir = hostile().concat();
    report.dirtied = Ok(hostile());
    report.rewritten = hostile();
    report.beside = true;
    let names = hostile();
    report.unasked = Unasked::of(names.iter().map(String::as_str), names.iter().map(String::as_str));
    report.at = Some(Timestamp::from_millis(1_700_000_000_123));
    report
}

fn reports() -> Vec<VerifyReport> {
    let mut timed = every();
    timed.at = Some(Timestamp::from_millis(1_700_000_000_123));
    let mut pristine = report(Vec::new(), Vec::new());
    pristine.pristine = true;
    pristine.exempt = vec![GoalId::new("live-one").unwrap()];
    pristine.recordless = vec![GoalId::new("review").unwrap()];
    pristine.dirtied = Err("they ran in a clean checkout");
    let mut allowed = report(Vec::new(), Vec::new());
    allowed.allow_empty = true;
    let green = report(vec![row("green", &Verdict::Pass)], Vec::new());
    vec![every(), timed, all_hostile(), pristine, allowed, green, report(Vec::new(), Vec::new())]
}

fn sarif_errors(text: &str) -> Vec<String> {
    // A bracket too many, as published; the validator takes only what is a pattern. We have no such field.
    let typo = "^[a-zA-Z]{2}|^[a-zA-Z]{2}-[a-zA-Z]{2}]?$";
    assert_eq!(SARIF.matches(typo).count(), 2);
    let schema: Value = serde_json::from_str(&SARIF.replace(typo, "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$")).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let log: Value = serde_json::from_str(text).unwrap();
    validator.iter_errors(&log).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn junit_errors(text: &str) -> Vec<String> {
    let schema = parse(JUNIT).unwrap();
    let validator = XsdValidator::from_schema(&schema).unwrap();
    match parse(text) {
        Ok(document) => validator.validate(&document).iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn every_sarif_log_is_valid() {
    for report in reports() {
        assert_eq!(sarif_errors(&verify_sarif(&report)), Vec::<String>::new());
    }
}

#[test]
fn every_junit_report_is_valid() {
    for report in reports() {
        let text = verify_junit(&report);
        assert_eq!(
            junit_errors(&text),
            Vec::<String>::new(),
            "{}",
            text.chars().take(3000).collect::<String>()
        );
    }
}

#[test]
fn the_validators_refuse_what_is_broken() {
    let sarif = verify_sarif(&every());
    for (old, new) in [
        ("\"version\": \"2.1.0\"", "\"version\": \"2.0.0\""),
        ("\"level\": \"warning\"", "\"level\": \"loud\""),
        ("\"ruleIndex\": 1", "\"ruleIndex\": \"1\""),
        ("\"startLine\": 12", "\"startLine\": 0"),
        ("\"executionSuccessful\"", "\"executionSuccesful\""),
        ("src/x.rs", "src/x y.rs"),
    ] {
        let broken = sarif.replace(old, new);
        assert!(broken != sarif && !sarif_errors(&broken).is_empty(), "{old}");
    }
    let mut timed = every();
    timed.at = Some(Timestamp::from_millis(0));
    let junit = verify_junit(&timed);
    for (old, new) in [
        ("<testcase name=\"green\"", "<testcase nam=\"green\""),
        ("<failure type", "<falure type"),
        ("</failure>", "</falure>"),
        (" tests=\"6\"", ""),
        ("time=\"7.404\"", "time=\"soon\""),
        ("<properties>", "<properties>text"),
        ("<testsuites ", "<testsuites extra=\"1\" "),
        ("two</system-err>", "two\u{1}</system-err>"),
        ("two</system-err>", "two]]></system-err>"),
        ("\"green\"", "\"gr<een\""),
    ] {
        let broken = junit.replace(old, new);
        assert!(broken != junit, "{old} is not there");
        assert!(!junit_errors(&broken).is_empty(), "{old} -> {new} is taken for valid");
    }
}

#[test]
fn the_same_verdicts_give_the_same_bytes_however_long_they_took() {
    let renderings = |report: &VerifyReport| {
        [
            verify_markdown(report),
            verify_json(report, report.answer().exit()),
            verify_junit(report),
            verify_sarif(report),
            verify_github(report),
        ]
    };
    let mut slower = every();
    for row in slower.hard.iter_mut().chain(&mut slower.extra) {
        row.duration_ms = row.duration_ms * 7 + 1;
    }
    assert_eq!(renderings(&every()), renderings(&slower));
    slower.at = Some(Timestamp::from_millis(1_700_000_000_123));
    for (plain, timed) in renderings(&every()).into_iter().zip(renderings(&slower)).take(4) {
        let told = ["2023-11-14T22:13:20.123Z", "8639"]
            .iter()
            .all(|part| timed.replace("8.639", "8639").contains(part));
        assert!(plain != timed && told, "{timed}");
    }
}

#[test]
fn nothing_to_check_is_red_in_every_format() {
    let report = report(Vec::new(), Vec::new());
    assert_eq!((report.answer(), report.answer().exit()), (Answer::NothingToCheck, 1));
    assert!(verify_junit(&report).contains("failures=\"1\""));
    assert!(verify_sarif(&report).contains("\"level\": \"error\""));
    assert!(verify_github(&report).starts_with("::error "));
    assert!(verify_markdown(&report).contains("NOTHING TO CHECK"));
    assert!(verify_json(&report, report.answer().exit()).contains("\"nothing-to-check\""));
}

#[test]
fn an_annotation_says_a_short_diagnostic_once() {
    let text = verify_github(&report(vec![row("x", &fail("a shallow clone"))], Vec::new()));
    assert_eq!(text.matches("a shallow clone").count(), 1, "{text}");
    let text = verify_github(&report(vec![row("x", &fail("one\ntwo"))], Vec::new()));
    assert!(text.contains("one | two%0Aone%0Atwo"), "{text}");
}

#[test]
fn red_wins_over_not_judged_and_skipped_is_red() {
    let answer = |rows: &[Verdict]| report(rows.iter().map(|v| row("x", v)).collect(), Vec::new()).answer();
    let error = Verdict::Error { diagnostic: String::new() };
    assert_eq!(answer(&[Verdict::Pass]), Answer::Pass);
    assert_eq!(answer(&[Verdict::Pass, error.clone()]), Answer::NotJudged);
    assert_eq!(answer(&[error, fail("x")]), Answer::Fail);
    let mut skipped = row("x", &Verdict::Pass);
    skipped.state = RowState::Skipped;
    assert_eq!(report(vec![skipped], Vec::new()).answer(), Answer::Fail);
}

#[test]
fn sarif_points_at_the_finding_else_at_the_goal() {
    let log: Value = serde_json::from_str(&verify_sarif(&every())).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let at = |n: usize| {
        let place = &results[n]["locations"][0]["physicalLocation"];
        (place["artifactLocation"]["uri"].as_str().unwrap(), place["region"]["startLine"].as_u64().unwrap())
    };
    assert_eq!(results.len(), 7);
    assert_eq!([at(0), at(1), at(2)], [("src/a%20b.rs", 7), ("src/x.rs", 12), (".peers/goals.yaml", 3)]);
    let levels: Vec<_> = results.iter().map(|result| result["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["error", "error", "error", "warning", "error", "error", "error"]);
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 9);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
    }
    assert_eq!(results[6]["ruleId"], "verify/lint (2)");
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(run["properties"]["accept_digest"], "c".repeat(64));
    let green: Value = serde_json::from_str(&verify_sarif(&reports()[5])).unwrap();
    assert_eq!(green["runs"][0]["results"], serde_json::json!([]));
    assert_eq!(green["runs"][0]["invocations"][0]["executionSuccessful"], true);
}

#[test]
fn a_workflow_command_cannot_be_forged() {
    let text = verify_github(&all_hostile());
    assert_eq!(text.lines().count(), 1 + 4 + 2 * hostile().len());
    for line in text.lines() {
        let begins = ["::error file=", "::error title=peers verify::", "::warning title=peers verify::"];
        assert!(begins.iter().any(|begin| line.starts_with(begin)) && !line.contains("##["), "{line}");
        assert!(!line.contains(['\r', '\u{1b}', '\0']) && line.len() < 20_000, "{line}");
        // Behind the command's own `::` no property can be added or ended.
        let properties = line.split_once(' ').unwrap().1.split_once("::").unwrap().0;
        assert!(
            properties.split(',').all(|p| ["file=", "line=", "title="].iter().any(|k| p.starts_with(k))),
            "{line}"
        );
    }
}

#[test]
fn what_is_said_on_the_other_stream_is_no_command() {
    for text in ["::error::x", "a ##[stop-commands]x", ":::warning:::x", "##[[x", "a::b::c", "###[error]"] {
        let said = without_commands(text);
        assert!(!said.contains("::") && !said.contains("##["), "{said}");
        assert_eq!(said.replace(' ', ""), text.replace(' ', ""));
    }
    assert_eq!(without_commands("took 3s: fine # [x]"), "took 3s: fine # [x]");
}

#[test]
fn what_a_reader_has_to_know_besides_the_result_is_in_every_format() {
    let mut report = report(vec![row("green", &Verdict::Pass)], Vec::new());
    report.dirtied = Ok(vec!["left/a".to_owned()]);
    report.rewritten = vec!["made/b".to_owned()];
    report.beside = true;
    report.unasked = Unasked::of(["real"].into_iter(), ["lint"].into_iter());
    assert_eq!(report.result(), "PASS (1 of 1 hard goal green; --only left out 2)");
    insta::assert_snapshot!("caveats_markdown", verify_markdown(&report));
    insta::assert_snapshot!("caveats_junit", verify_junit(&report));
    insta::assert_snapshot!("caveats_github", verify_github(&report));
    let json: Value = serde_json::from_str(&verify_json(&report, report.answer().exit())).unwrap();
    assert_eq!((&json["whole"], &json["beside"]), (&false.into(), &true.into()));
    assert_eq!(json["left_out"], serde_json::json!({"hard": ["real"], "verify": ["lint"]}));
    assert_eq!(json["dirtied"], serde_json::json!(["left/a"]));
    assert_eq!(json["rewritten"], serde_json::json!(["made/b"]));
    let log: Value = serde_json::from_str(&verify_sarif(&report)).unwrap();
    let told = &log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    assert_eq!(told.as_array().unwrap().len(), 4, "{told}");
}

#[test]
fn foreign_text_changes_no_structure_of_the_markdown() {
    let text = verify_markdown(&all_hostile());
    let rows: Vec<&str> =
        text.lines().filter(|line| line.starts_with("| ") && !line.contains("state |")).collect();
    assert_eq!(rows.len(), 2 * hostile().len());
    for row in rows {
        let bars = row.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert_eq!(bars, 5, "{row}");
        assert!(row.chars().count() < 2000, "{row}");
    }
    assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 3, "{text}");
    assert!(!text.contains("<script") && !text.contains(['\u{1b}', '\u{202e}', '\0', '\r']));
    assert!(text.contains("\\`code\\` \\[l\\](http://x) \\*b\\*"), "{text}");
    let long = verify_markdown(&report(vec![row("x", &fail(&"y".repeat(500)))], Vec::new()));
    assert!(long.contains(&format!("| {}… |", "y".repeat(199))), "{long}");
}

#[test]
fn no_rendering_steers_a_terminal_or_grows_without_bound() {
    let report = all_hostile();
    for text in [
        verify_markdown(&report),
        verify_json(&report, report.answer().exit()),
        verify_junit(&report),
        verify_sarif(&report),
        verify_github(&report),
    ] {
        assert!(text.len() < 4 * 1024 * 1024, "{}", text.len());
        assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || peers_sys::term::invisible(c))));
    }
}

#[test]
fn a_row_of_a_gate_has_what_its_verdict_has() {
    let key =
        TreeKey { head: CommitId::new("1".repeat(40)).unwrap(), tree: TreeId::new("2".repeat(40)).unwrap() };
    let judged = Judged {
        goal: GoalId::new("real").unwrap(),
        at: key,
        place: Place::Live,
        verdict: fail("x"),
        attempts: 3,
        duration_ms: 9,
        leaked: 0,
        exit_code: None,
        signal: None,
        cached: false,
        setup_failed: false,
        manifests: None,
    };
    let row = VerifyRow::gate(&judged, source(4));
    assert_eq!((row.name.as_str(), row.state, row.attempts, row.duration_ms), ("real", RowState::Fail, 3, 9));
    let json: Value = serde_json::from_str(&verify_json(&report(vec![row], Vec::new()), 1)).unwrap();
    assert_eq!(json["schema"], "peers.verify/2");
    assert_eq!((&json["ts"], &json["hard"][0]["duration_ms"]), (&Value::Null, &Value::Null));
    assert_eq!((&json["hard"][0]["attempts"], &json["hard"][0]["line"]), (&3.into(), &4.into()));
}

#[test]
fn the_slowest_are_named_for_people() {
    let mut report = every();
    report.hard[4].duration_ms = 61_000;
    assert_eq!(report.slowest(62_000), "took 1m 2s; slowest: lost 1m 1s, green 1s, tests-pass 1s");
    assert_eq!(
        super::report::VerifyReport { hard: Vec::new(), extra: Vec::new(), ..report }.slowest(5),
        "took 5ms"
    );
}

#[test]
fn each_kind_of_row_is_told_apart() {
    let report = every();
    insta::assert_snapshot!("markdown", verify_markdown(&report));
    insta::assert_snapshot!("junit", verify_junit(&report));
    insta::assert_snapshot!("github", verify_github(&report));
    insta::assert_snapshot!("junit_of_a_clean_checkout", verify_junit(&reports()[3]));
}
