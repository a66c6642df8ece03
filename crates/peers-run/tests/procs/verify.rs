//! Extra commands of `peers verify`.

use peers_model::verdict::Verdict;
use peers_run::drive::on_this_thread;
use peers_run::procs::{Cancel, Extra, run_extra};

use crate::stage::{FOREVER, Stage};

#[test]
fn extra_commands_pass_with_exit_code_zero() {
    let mut stage = Stage::new();
    stage.settings = format!(
        "verify: {{commands: [{{cmd: 'true'}}, {{name: lint, cmd: 'echo bad >&2; exit 4'}}, {{cmd: '{FOREVER}', timeout_s: 1}}]}}\n"
    );
    let (site, book) = (stage.site(), stage.book("argv: [nobody]"));
    let results =
        on_this_thread(async { run_extra(&site, &book, &Extra::all(&book), &Cancel::never()).await })
            .unwrap();
    let names: Vec<&str> = results.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["true", "lint", FOREVER]);
    assert_eq!(results[0].verdict, Verdict::Pass);
    assert_eq!(results[1].verdict, Verdict::Fail { diagnostic: "exit code 4; bad".into() });
    assert_eq!(results[2].verdict.word(), "timeout");
    assert!(stage.scratch_is_tidy());
}

#[test]
fn the_limit_of_verify_stands_before_that_of_the_goals() {
    let limits = |settings: &str| -> Vec<u64> {
        let mut stage = Stage::new();
        stage.settings = settings.into();
        Extra::all(&stage.book("argv: [nobody]")).iter().map(|extra| extra.limit.as_secs()).collect()
    };
    let commands = "commands: [{cmd: a}, {cmd: b, timeout_s: 9}]";
    assert_eq!(limits(&format!("verify: {{{commands}}}\n")), [120, 9]);
    assert_eq!(limits(&format!("goals: {{timeout_s: 7}}\nverify: {{{commands}}}\n")), [7, 9]);
    assert_eq!(limits(&format!("goals: {{timeout_s: 7}}\nverify: {{timeout_s: 8, {commands}}}\n")), [8, 9]);
}
