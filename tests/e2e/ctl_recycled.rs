//! A process id that belongs to somebody else by now: in a namespace of process ids, where the next one can be
//! chosen.

use std::process::Command;

use serde_json::Value;

use crate::ctl_fleet::{Fleet, controller};
use crate::support::Ended;

/// Starts a loop, kills it, has its very number taken by a process that notes every signal, then does what it is
/// given, and tells whether that process lives on. It is the first process of its namespace: what dies is reaped
/// by it while it waits for its next command.
const SCRIPT: &str = r#"
set -eu
"$CTL" start demo >/dev/null
read -r up < "$WORLD/pipe"
pid=$(sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$STORE/run.lock" | head -n 1)
kill -KILL "$pid"
while kill -0 "$pid" 2>/dev/null; do /bin/true; done
cat > "$WORLD/innocent.sh" <<'INNOCENT'
for signal in HUP INT QUIT USR1 USR2 TERM CONT; do
  trap "echo $signal >> '$WORLD/signals'" "$signal"
done
echo up > "$WORLD/ready"
while :; do read -r line < "$WORLD/never" || :; done
INNOCENT
tries=0
while :; do
  echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid
  sh "$WORLD/innocent.sh" &
  innocent=$!
  read -r up < "$WORLD/ready"
  [ "$innocent" = "$pid" ] && break
  kill -KILL "$innocent"
  tries=$((tries + 1))
  [ "$tries" -lt 50 ] || { echo "number $pid was not to be had"; exit 9; }
done
echo "recycled $pid"
for command in $COMMANDS; do
  code=0
  "$CTL" $command demo --json > "$WORLD/said.json" 2> "$WORLD/said.err" || code=$?
  echo "$command $code $(tr -d '\n' < "$WORLD/said.json")"
  [ "$command" != start ] || read -r up < "$WORLD/pipe"
  kill -0 "$innocent" || echo "$command killed it"
  [ "$(cut -d ' ' -f 3 < "/proc/$innocent/stat")" = S ] || echo "$command left it in another state"
done
[ ! -e "$WORLD/signals" ] || echo "it was signalled: $(cat "$WORLD/signals")"
echo over
"#;

/// A command that runs in a new namespace of processes; `None` where the kernel has none for us.
fn in_a_namespace(fleet: &Fleet) -> Option<Command> {
    let apart = || {
        let mut command = fleet.command("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
        command
    };
    let mut probe = apart();
    probe.args(["sh", "-c", "cat /proc/sys/kernel/ns_last_pid > /dev/null"]);
    let done = Ended::of(&probe.output().ok()?);
    if done.code == Some(0) {
        return Some(apart());
    }
    eprintln!("skipped: no namespace of processes is to be had here: {}", done.err);
    None
}

/// What each command said whose number had been taken by then.
fn told(fleet: &Fleet, commands: &[&str]) -> Option<Vec<(String, Value)>> {
    let mut command = in_a_namespace(fleet)?;
    for fifo in ["ready", "never"] {
        fleet.fifo(fifo);
    }
    command.args(["sh", "-c", SCRIPT]).env("CTL", controller()).env("WORLD", fleet.path(""));
    command.env("STORE", fleet.store()).env("COMMANDS", commands.join(" "));
    let done = Ended::of(&command.output().unwrap()).exits(0);
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines[0].starts_with("recycled ") && lines.last() == Some(&"over"), "{}{}", done.out, done.err);
    let pid: u64 = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
    let said = lines[1..lines.len() - 1].iter().map(|line| {
        let mut parts = line.splitn(3, ' ');
        let (what, code) = (parts.next().unwrap().to_owned(), parts.next().unwrap());
        assert_eq!(code, "0", "{line}\n{}", done.err);
        let value: Value =
            serde_json::from_str(parts.next().unwrap()).unwrap_or_else(|e| panic!("{e}: {line}"));
        let row = value["data"][0].clone();
        assert_ne!(row["pid"], pid, "{line}");
        (what, row)
    });
    Some(said.collect())
}

#[test]
fn a_number_that_somebody_else_has_by_now_is_never_signalled_and_never_taken_for_a_loop() {
    for commands in [
        &["stop", "list", "start", "list", "stop", "list"][..],
        &["list", "stop", "start", "stop", "list"],
        &["start", "list", "stop", "list"],
    ] {
        let fleet = Fleet::hanging();
        let Some(said) = told(&fleet, commands) else { return };
        let mut started = false;
        for (what, row) in said {
            match what.as_str() {
                "start" => started = true,
                "stop" => {
                    let result = if started { "stopped" } else { "not-running" };
                    assert_eq!(row["result"], result, "{commands:?}: {row}");
                    started = false;
                }
                _ => assert_eq!(row["state"] == "running", started, "{commands:?}: {row}"),
            }
        }
    }
}

#[test]
fn a_stop_says_that_the_number_is_somebody_elses() {
    let fleet = Fleet::hanging();
    let Some(said) = told(&fleet, &["stop"]) else { return };
    let detail = said[0].1["detail"].as_str().unwrap();
    assert!(detail.contains("is now a different one and was not touched"), "{detail}");
}
