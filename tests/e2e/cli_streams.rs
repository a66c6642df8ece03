//! Output that nobody takes.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{World, program};

/// The two ends of a pipe that is full to the last byte, and how many bytes are in it.
pub(crate) fn full() -> (UnixStream, Stdio, usize) {
    let (reader, mut writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    let mut bytes = 0;
    for piece in [4096, 1] {
        loop {
            match writer.write(&vec![b'.'; piece]) {
                Ok(written) => bytes += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    writer.set_nonblocking(false).unwrap();
    (reader, OwnedFd::from(writer).into(), bytes)
}

/// Waits until a run that goes on has recorded its end, at most until a deadline that only a failing test
/// reaches.
fn over(world: &World, child: &mut Child) {
    let deadline = Instant::now() + Duration::from_mins(2);
    // Its last file, and published as a whole.
    while !world.at(".peers/last-stop-reason.txt").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before anybody read its last word");
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
    assert_eq!(world.records("exit").len(), 1);
}

/// A run of so many ticks with these streams. Our ends of them are closed.
pub(crate) fn run(world: &World, ticks: &str, stdout: impl Into<Stdio>, stderr: impl Into<Stdio>) -> Child {
    let mut command = world.command(program());
    command.args(["run", "--max-ticks", ticks]).stdout(stdout).stderr(stderr).spawn().unwrap()
}

/// What was written behind the bytes that filled the pipe.
fn rest(mut reader: UnixStream, bytes: usize) -> String {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    String::from_utf8(all.split_off(bytes)).unwrap()
}

#[test]
fn a_reader_of_our_output_that_stops_reading_holds_up_the_last_word_alone() {
    let world = World::ready("true");
    let (reader, stdout, bytes) = full();
    let mut child = run(&world, "2", stdout, Stdio::piped());
    // The whole run is over and recorded before anybody reads.
    let mut err = child.stderr.take().unwrap();
    over(&world, &mut child);
    assert_eq!(world.records("tick").len(), 2);
    assert_eq!(rest(reader, bytes), "Stopped: max_ticks\n");
    err.read_to_string(&mut String::new()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_reader_of_our_output_that_leaves_changes_neither_the_run_nor_its_code() {
    let world = World::ready("false");
    let (reader, stdout, _) = full();
    let mut child = run(&world, "1", stdout, Stdio::null());
    over(&world, &mut child);
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    world.peers(&["state", "check"]).exits(0);
}

#[test]
fn talk_that_nobody_reads_holds_up_no_turn_and_is_there_for_a_late_reader() {
    let world = World::ready("true");
    let (reader, stderr, bytes) = full();
    let mut child = run(&world, "2", Stdio::piped(), stderr);
    let mut out = child.stdout.take().unwrap();
    over(&world, &mut child);
    assert_eq!(world.records("tick").len(), 2);
    let talk = rest(reader, bytes);
    assert!(talk.contains("tick 1") && talk.contains("tick 2"), "{talk}");
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), child.wait().unwrap().code()), ("Stopped: max_ticks\n", Some(0)));
}
