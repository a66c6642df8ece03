//! Options of the controller that choose what is shown, kept, mended and removed.

use std::os::unix::fs::PermissionsExt;

use crate::ctl_fleet::Fleet;

/// A run in which ann and ben hand over, and one whose only turn fails.
fn two_runs() -> (Fleet, [String; 2]) {
    let fleet = Fleet::new();
    let run = |ticks: &str| fleet.ran(&["--max-ticks", ticks])["run_id"].as_str().unwrap().to_owned();
    let first = run("2");
    fleet.scripts("turns:\n- - exit: 3\n");
    let second = run("1");
    (fleet, [first, second])
}

#[test]
fn an_option_chooses_turns_runs_and_records() {
    let (fleet, [first, second]) = two_runs();
    let said = |args: &[&str]| fleet.ctl(args).exits(0).out;

    let failed = fleet.data("peers-ctl.replay/1", &["replay", "--failed"], 0);
    let rows = failed["items"].as_array().unwrap();
    let ticks: Vec<_> = rows.iter().filter(|row| row["kind"] == "tick").map(|row| &row["tick"]).collect();
    assert_eq!(ticks, [3]);

    let handoffs = |n: &str| {
        let data = fleet.data("peers-ctl.review/1", &["review", "--newest", n], 0);
        data["handoffs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["tick"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!((handoffs("1"), handoffs("2")), (vec![2], vec![2, 1]));

    let csv = said(&["compare", "demo", &format!("demo@{second}"), "--csv"]);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0][..3], ["measure", "unit", "demo"]);
    assert_eq!(lines[1][..5], ["iterations", "count", "3", "1", "-2"]);
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");

    let log = said(&["logs", "--run", &first]);
    assert!(log.contains(&first) && !log.contains(&second), "{log}");
    let records = said(&["tail", "--events", "--once", "--lines", "100"]);
    assert!(records.contains("demo: ") && records.contains(" peer-spawned "), "{records}");
    let file = fleet.path("report.md");
    let path = file.to_str().unwrap();
    assert_eq!(said(&["report", "--output", path]), format!("{path}\n"));
    assert!(std::fs::read_to_string(file).unwrap().starts_with("# peers-ctl report\n"));
}

#[test]
fn an_option_says_how_much_is_removed_and_what_is_mended() {
    let (fleet, _) = two_runs();
    let dir = fleet.path("home/config/peers-ctl");
    let logs = || std::fs::read_dir(dir.join("logs")).unwrap().count();
    fleet.ctl(&["prune"]).exits(0);
    assert_eq!(logs(), 1, "a new log stays");
    fleet.ctl(&["prune", "--older-than", "0s"]).exits(0);
    assert_eq!(logs(), 0);

    fleet.start(&["--max-ticks", "1"]);
    fleet.ctl(&["wait"]).exits(0);
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o755)).unwrap();
    let mode = || dir.metadata().unwrap().permissions().mode() & 0o777;
    assert!(fleet.ctl(&["doctor"]).out.contains("-> `peers-ctl doctor --fix`\n"));
    let elsewhere = fleet.ctl(&["--config-dir", dir.to_str().unwrap(), "doctor"]).out;
    let typed = format!("-> `peers-ctl --config-dir {} doctor --fix`\n", dir.display());
    assert!(elsewhere.contains(&typed), "{elsewhere}");
    assert_eq!(mode(), 0o755, "without the option nothing is changed");
    let mended = fleet.ctl(&["doctor", "--fix"]);
    assert!(mended.err.starts_with("mended: the registry's directory"), "{}", mended.err);
    assert_eq!(mode(), 0o700);

    fleet.ctl(&["remove", "demo"]).exits(0);
    assert_eq!(logs(), 1, "its log stays");
    fleet.ctl(&["add", ".", "--name", "demo"]).exits(0);
    fleet.ctl(&["remove", "demo", "--purge-logs"]).exits(0);
    assert_eq!(logs(), 0);
}
