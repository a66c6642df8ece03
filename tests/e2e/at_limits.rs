//! What happens when a limit of time is over. These wait it out, so they come first: the others run beside them.

use std::process::Stdio;

use serde_json::Value;

use crate::cli_streams::{full, run};
use crate::ctl_fleet::lives;
use crate::ctl_watch::{killed, once};
use crate::support::World;

#[test]
fn a_command_is_told_everything_has_no_signal_blocked_and_ends_with_all_that_it_began() {
    let fleet = killed();
    let (file, pids) = (fleet.path("said"), fleet.path("pids"));
    let say = format!(
        "{{ echo \"$PEERS_PROJECT $PEERS_LEVEL $PEERS_CODE\"; grep SigBlk /proc/self/status; cat; }} > {}; echo heard",
        file.display()
    );
    let hang = format!("trap '' TERM; sleep 1000 & echo $! $$ > {}; wait; sleep 1000", pids.display());
    let done = once(&fleet, &["--no-restart", "--notify-cmd", &say, "--notify-cmd", &hang]);
    done.err_has("it took longer than 20 seconds");
    assert!(!done.out.contains("heard") && !done.err.contains("heard"), "{}{}", done.out, done.err);
    let text = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[1]), ("demo act crashed", "SigBlk:\t0000000000000000"));
    let notice: Value = serde_json::from_str(lines[2]).unwrap();
    assert_eq!((&notice["schema"], &notice["level"]), (&"peers-ctl.notice/1".into(), &"act".into()));
    for pid in std::fs::read_to_string(pids).unwrap().split_whitespace() {
        assert!(!lives(pid.parse().unwrap()), "{pid} lives");
    }
}

#[test]
fn talk_that_nobody_ever_reads_holds_up_neither_the_last_word_nor_the_end() {
    let world = World::ready("true");
    let (reader, stderr, _) = full();
    let child = run(&world, "1", Stdio::piped(), stderr);
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.stdout.as_slice(), done.status.code()), (&b"Stopped: max_ticks\n"[..], Some(0)));
    drop(reader);
}
