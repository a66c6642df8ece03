//! Gates: verdicts, limits, leftovers, cancelling.

use peers_model::GoalId;
use peers_model::goal::GateRun;
use peers_model::verdict::{Judged, Place, Verdict};
use peers_run::env::Policy;
use peers_run::ports::Procs;
use peers_run::procs::Live;

use crate::stage::{FOREVER, NEVER, Stage, isolated, judged, process, until};

const PASS: &str = "exit_code == 0";

fn one(cmd: &str, pass_when: &str) -> (Stage, Judged) {
    let mut stage = Stage::new();
    stage.gate("the-gate", cmd, pass_when).timeout_s = Some(20);
    let mut verdicts = stage.judge();
    assert_eq!(verdicts.len(), 1);
    (stage, verdicts.remove(0))
}

fn passes(cmd: &str, pass_when: &str) {
    let (_, judged) = one(cmd, pass_when);
    assert!(judged.verdict.is_pass(), "{cmd}: {:?}", judged.verdict);
}

#[test]
fn verdicts_come_in_the_order_of_the_goals() {
    let mut stage = Stage::new();
    stage.settings = "goals: {parallel: 3}\n".into();
    for (n, id) in ["slow", "b", "c", "d", "e"].into_iter().enumerate() {
        // The first ends last: it waits for the others.
        let cmd = if n == 0 {
            "while [ ! -e e ]; do :; done".to_owned()
        } else {
            format!(": > {id}; exit {}", n % 2)
        };
        stage.gate(id, &cmd, PASS);
    }
    let verdicts = stage.judge();
    let words: Vec<(&str, &str)> = verdicts.iter().map(|j| (j.goal.as_str(), j.verdict.word())).collect();
    assert_eq!(words, [("slow", "pass"), ("b", "fail"), ("c", "pass"), ("d", "fail"), ("e", "pass")]);
    assert!(verdicts.iter().all(|j| j.attempts == 1 && j.leaked == 0 && j.place == Place::Live));
    assert!(stage.scratch_is_tidy());
}

#[test]
fn a_gate_knows_where_it_is_and_nothing_of_the_operator() {
    let mut stage = Stage::new();
    stage.vars.push(("DATABASE_URL".into(), "db".into()));
    stage.vars.push(("OTHER".into(), "sentinel".into()));
    stage.chosen = Policy::passing(&["OTHER"], &["DATABASE_URL"]);
    stage.settings = "goals: {env: [DATABASE_URL, OTHER]}\n".into();
    let repo = stage.at("repo").canonicalize().unwrap();
    let home = stage.at("home");
    let cmd = format!(
        "test \"$PEERS_REPO\" = '{}' && test \"$(pwd)\" = \"$PEERS_REPO\" && test \"$PEERS_GOAL_ID\" = g &&
         test \"$PEERS_BIN\" = /opt/peers && test \"$DATABASE_URL\" = db && test -d \"$HOME\" &&
         test \"$HOME\" != '{}' && : > \"$HOME/file\" && ! env | grep sentinel && ! read line",
        repo.display(),
        home.display()
    );
    stage.gate("g", &cmd, PASS);
    let verdicts = stage.judge();
    assert!(verdicts[0].verdict.is_pass(), "{:?}", verdicts[0]);
    assert!(stage.scratch_is_tidy(), "its home is gone");
}

#[test]
fn nothing_that_must_not_pass_is_in_the_environment_of_a_real_gate() {
    let mut stage = Stage::with_sentinels();
    stage.settings = format!("goals: {{env: [{}]}}\n", NEVER.join(", "));
    stage.gate("g", "env | grep -c sentinel; test -n \"$PATH\"", "stdout == '0\\n' and exit_code == 0");
    let verdicts = stage.judge();
    assert!(verdicts[0].verdict.is_pass(), "{:?}", verdicts[0]);
}

#[test]
fn a_gate_at_its_limit_is_ended_with_children_that_left_its_group() {
    let mut stage = Stage::new();
    let cmd = "echo begun; setsid sh -c 'echo $$ > far; exec tail -f /dev/null' & tail -f /dev/null & echo $! > near
               while [ ! -s far ]; do :; done; wait";
    stage.gate("g", cmd, PASS).timeout_s = Some(1);
    let verdicts = stage.judge();
    let Verdict::Timeout { diagnostic } = &verdicts[0].verdict else { panic!("{:?}", verdicts[0]) };
    assert!(
        diagnostic.starts_with("timeout; exit_code=143; stdout-tail='begun'; stderr-tail='"),
        "{diagnostic}"
    );
    for name in ["near", "far"] {
        assert_eq!(process(&stage.repo(name)), None, "{name}");
    }
}

#[test]
fn the_limit_of_the_configuration_holds_for_a_gate_without_its_own() {
    let mut stage = Stage::new();
    stage.settings = "goals: {timeout_s: 1}\n".into();
    stage.gate("g", "tail -f /dev/null", PASS);
    assert_eq!(stage.judge()[0].verdict.word(), "timeout");
}

#[test]
fn a_gate_that_ignores_the_request_is_killed_at_its_limit() {
    let mut stage = Stage::new();
    stage.gate("g", "trap '' TERM; echo $$ > leader; while :; do tail -f /dev/null; done", PASS).timeout_s =
        Some(1);
    assert_eq!(stage.judge()[0].verdict.word(), "timeout");
    assert_eq!(process(&stage.repo("leader")), None);
}

#[test]
fn a_gate_that_closes_its_streams_is_judged_by_its_exit() {
    passes("exec >&- 2>&- <&-; exit 3", "exit_code == 3");
}

#[test]
fn a_gate_may_judge_a_file_that_it_wrote() {
    passes("echo '{\"covered\": 81.5}' > cov.json", "json('cov.json').covered >= 80");
}

#[test]
fn a_flaky_gate_gets_another_chance_and_a_slow_one_does_not() {
    let mut stage = Stage::new();
    stage.gate("flaky", "echo try; test -e again || { : > again; exit 1; }", PASS).retries = 3;
    let slow = stage.gate("slow", FOREVER, PASS);
    (slow.retries, slow.timeout_s) = (3, Some(1));
    stage.gate("red", "echo run >> runs; exit 1", PASS).retries = 2;
    let verdicts = stage.judge();
    let seen: Vec<(&str, u8)> = verdicts.iter().map(|j| (j.verdict.word(), j.attempts)).collect();
    assert_eq!(seen, [("pass", 2), ("timeout", 1), ("fail", 3)]);
    assert_eq!(stage.read("runs").lines().count(), 3);
    let log = stage.read(".peers/log/gates/tick-00007-flaky.log");
    assert_eq!(log, "try\n\n[peers: attempt 2]\ntry\n");
}

#[test]
fn cancelled_gates_have_no_verdict_and_leave_nothing() {
    let mut stage = Stage::new();
    stage.settings = "goals: {parallel: 1}\n".into();
    stage.gate("done", "true", PASS);
    stage.gate("hangs", &format!("echo $$ > leader; : > ready; {FOREVER}"), PASS);
    stage.gate("waits", ": > never", PASS);
    let verdicts = stage.with(stage.book("argv: [nobody]"), async |mut procs, mut arriving| {
        let progress = procs.progress();
        procs.judge(stage.job());
        until(|| stage.repo("ready").exists()).await;
        let Some(Live::Gates(live)) = progress.now() else { panic!("gates run") };
        assert_eq!((live.of, live.done, live.running), (3, 1, vec![GoalId::new("hangs").unwrap()]));
        procs.cancel_gates();
        judged(&mut arriving).await
    });
    let ids: Vec<&str> = verdicts.iter().map(|j| j.goal.as_str()).collect();
    assert_eq!(ids, ["done"]);
    assert_eq!(process(&stage.repo("leader")), None);
    assert!(!stage.repo("never").exists());
}

#[test]
fn a_gate_that_cannot_be_started_could_not_be_judged() {
    let mut stage = Stage::new();
    stage.gate("g", "true", PASS);
    let mut job = stage.job();
    job.dir = Some(stage.at("no-such-tree"));
    job.gates.push(GoalId::new("unknown").unwrap());
    let verdicts = stage.judge_job(job);
    assert!(verdicts.iter().all(|j| j.verdict.is_error()), "{verdicts:?}");
    assert!(verdicts[0].verdict.diagnostic().contains("could not be started"), "{verdicts:?}");
}

#[test]
fn a_log_that_cannot_be_written_changes_no_verdict() {
    let mut stage = Stage::new();
    std::fs::write(stage.repo(".peers/log"), "in the way").unwrap();
    stage.gate("g", "echo words", "stdout == 'words\\n'");
    assert!(stage.judge()[0].verdict.is_pass());
}

#[test]
fn a_check_is_our_own_program_with_its_three_answers() {
    let mut stage = Stage::new();
    for code in ["0", "1", "3", "2"] {
        let run = GateRun::Check { name: format!("check-{code}"), args: vec!["--limit".into(), "5".into()] };
        stage.goal(&format!("goal-{code}"), run);
    }
    let verdicts = stage.judge();
    let words: Vec<&str> = verdicts.iter().map(|j| j.verdict.word()).collect();
    assert_eq!(words, ["pass", "fail", "error", "error"]);
    let repo = stage.at("repo").canonicalize().unwrap();
    let told = verdicts[1].verdict.diagnostic();
    assert!(told.ends_with(&format!("check-1 --repo {} --json --limit 5", repo.display())), "{told}");
}

#[test]
fn a_proof_runs_in_its_checkout_and_its_checks_judge_the_commit() {
    let mut stage = Stage::new();
    stage.gate("here", "echo output; test -e marker && test \"$PEERS_REPO\" = \"$(pwd)\"", PASS);
    stage.goal("there", GateRun::Check { name: "check-1".into(), args: Vec::new() });
    std::fs::create_dir(stage.at("checkout")).unwrap();
    std::fs::write(stage.at("checkout/marker"), "").unwrap();
    let mut job = stage.job();
    (job.place, job.dir) = (Place::Pristine, Some(stage.at("checkout").canonicalize().unwrap()));
    let verdicts = stage.judge_job(job);
    assert!(verdicts[0].verdict.is_pass(), "{:?}", verdicts[0]);
    assert!(
        verdicts[1].verdict.diagnostic().ends_with(&format!("--json --head {}", "a".repeat(40))),
        "{:?}",
        verdicts[1]
    );
    assert_eq!(stage.read(".peers/log/gates/tick-00007-here.proof.log"), "output\n");
}

/// A daemon with closed pipes; it writes its pid to a file, and the gate waits for that.
fn daemon(file: &str, clean: &str) -> String {
    format!(
        "({clean} setsid /bin/sh -c 'echo $$ > {file}; exec tail -f /dev/null' >/dev/null 2>&1 </dev/null &)
         while [ ! -s {file} ]; do :; done"
    )
}

#[test]
fn a_daemon_without_a_trace_is_counted_for_the_gate_that_runs_alone() {
    isolated("gates::a_daemon_without_a_trace_is_counted_for_the_gate_that_runs_alone", || {
        let mut stage = Stage::new();
        stage.subreaper = true;
        stage.settings = "goals: {parallel: 1}\n".into();
        stage.gate("tidy", "true", PASS);
        stage.gate("leaky", &daemon("d", "env -i"), PASS);
        let leaked: Vec<u32> = stage.judge().iter().map(|j| j.leaked).collect();
        assert_eq!(leaked, [0, 1]);
        assert_eq!(process(&stage.repo("d")), None);
    });
}

#[test]
fn the_end_of_one_gate_does_not_hit_a_daemon_that_another_one_still_uses() {
    isolated("gates::the_end_of_one_gate_does_not_hit_a_daemon_that_another_one_still_uses", || {
        let mut stage = Stage::new();
        stage.subreaper = true;
        stage.settings = "goals: {parallel: 2}\n".into();
        // `user` starts a server, lets `other` end with a daemon of its own, and finds its server alive.
        let user = format!(
            "{}; : > up; while [ ! -e quick ]; do :; done; exec 2>&1; kill -0 $(cat server)",
            daemon("server", "")
        );
        stage.gate("user", &user, PASS);
        stage.gate("other", &format!("while [ ! -e up ]; do :; done; {}", daemon("d", "")), PASS);
        stage.gate("third", ": > quick", PASS);
        let verdicts = stage.judge();
        assert!(verdicts.iter().all(|j| j.verdict.is_pass()), "{verdicts:?}");
        assert_eq!(verdicts.iter().map(|j| j.leaked).sum::<u32>(), 2);
        assert_eq!(process(&stage.repo("server")), None);
    });
}

#[test]
fn two_hundred_gates_leave_no_descriptor_behind() {
    isolated("gates::two_hundred_gates_leave_no_descriptor_behind", || {
        let mut stage = Stage::new();
        stage.subreaper = true;
        for n in 0..50 {
            stage.gate(&format!("gate-{n}"), "echo words", PASS);
        }
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        stage.with(stage.book("argv: [nobody]"), async |mut procs, mut arriving| {
            procs.judge(stage.job());
            judged(&mut arriving).await;
            let before = open();
            for _ in 0..3 {
                procs.judge(stage.job());
                assert_eq!(judged(&mut arriving).await.len(), 50);
            }
            assert_eq!(open(), before);
        });
    });
}
