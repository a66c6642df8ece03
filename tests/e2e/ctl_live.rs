//! A dashboard that is drawn anew: what begins is in the next frame, although what rests is not looked at anew.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::ctl_fleet::{Fleet, controller};
use crate::support::program;

/// Frames in which what rests is not looked at anew by itself.
const SOON: usize = 300;

#[test]
fn what_begins_in_a_project_at_rest_is_in_one_of_the_next_frames() {
    let fleet = Fleet::still();
    let mut command = fleet.command(controller());
    command.args(["dashboard", "--live", "--json", "--refresh-s", "0.1"]).stdout(Stdio::piped());
    let mut live = command.spawn().unwrap();
    let mut frames = BufReader::new(live.stdout.take().unwrap()).lines().map(|line| {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        frame["data"]["projects"][0].clone()
    });
    let mut seen = |what: &str, is: &dyn Fn(&Value) -> bool| {
        let found = frames.by_ref().take(SOON).position(|row| is(&row));
        assert!(found.is_some(), "{what} is not seen");
    };
    let state = |word: &'static str| move |row: &Value| row["state"] == word;
    // Some frames in which nothing goes on.
    for _ in 0..4 {
        seen("that nothing goes on", &state("fresh"));
    }
    // By hand: the registry learns of it by looking alone.
    let mut run = fleet.command(program());
    let mut run = run.arg("run").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    seen("a start", &state("running"));
    // Until it has ended: between two looks it may not be there yet.
    while run.try_wait().unwrap().is_none() {
        fleet.ctl(&["stop", "--now"]).exits(0);
    }
    // How it ended depends on how far it was: one that had recorded nothing yet is as before.
    for _ in 0..4 {
        seen("a stop", &|row| row["state"] != "running");
    }
    // The operator edits the goals, and accepts nothing.
    fleet.write(".peers/goals.yaml", "goals: []\n");
    seen("an edit", &|row| row["attention"]["code"].as_str().unwrap().contains("accept"));
    live.kill().unwrap();
    live.wait().unwrap();
}
