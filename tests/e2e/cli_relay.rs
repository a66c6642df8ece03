//! `peers relay`: the command behind it, its ports, its end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::{Ended, World, program};

/// A port that nobody listens on now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn relay(world: &World, maps: &[String], script: &str) -> Command {
    let mut command = world.command(program());
    command.arg("relay");
    for map in maps {
        command.args(["--map", map]);
    }
    command.args(["--", "bash", "-c", script]);
    command
}

/// With one map that nobody uses.
fn started(world: &World, script: &str) -> (Child, BufReader<ChildStdout>) {
    let map = format!("{}={}", free_port(), world.path("none.sock").display());
    let mut child = relay(world, &[map], script).stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

fn line(out: &mut impl std::io::BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn kill(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

#[test]
fn each_map_leads_to_its_socket_and_the_exit_code_comes_back() {
    let world = World::bare();
    let hosts = ["one", "two"].map(|name| {
        let path = world.path(name);
        let listener = UnixListener::bind(&path).unwrap();
        let served = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(client.try_clone().unwrap()).read_line(&mut question).unwrap();
            write!(client, "{name} heard {question}").unwrap();
        });
        (free_port(), path, served)
    });
    let maps: Vec<String> =
        hosts.iter().map(|(port, path, _)| format!("{port}={}", path.display())).collect();
    let [one, two] = hosts.each_ref().map(|(port, ..)| *port);
    let ask = |port: u16, word: &str| {
        format!("exec 3<>/dev/tcp/127.0.0.1/{port}; echo {word} >&3; cat <&3; exec 3<&-")
    };
    let script = format!("{}; {}; cat; exit 23", ask(one, "a"), ask(two, "b"));
    let mut child = relay(&world, &maps, &script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"the prompt\n").unwrap();
    Ended::waited(child).exits(23).out_has("one heard a\ntwo heard b\nthe prompt\n").err_lacks("error");
    for (.., served) in hosts {
        served.join().unwrap();
    }
}

#[test]
fn a_signal_reaches_the_command_and_its_end_by_one_is_told() {
    let world = World::bare();
    let (mut child, mut out) = started(
        &world,
        "trap 'echo asked; exit 9' TERM; echo up; while :; do tail -f /dev/null & wait; done",
    );
    assert_eq!(line(&mut out), "up");
    kill("-TERM", child.id());
    assert_eq!((line(&mut out).as_str(), child.wait().unwrap().code()), ("asked", Some(9)));
    let (mut child, mut out) = started(&world, "echo up; exec tail -f /dev/null");
    assert_eq!(line(&mut out), "up");
    kill("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_relay_that_is_killed_takes_its_command_with_it() {
    let world = World::bare();
    let (mut child, mut out) = started(&world, "echo up; exec tail -f /dev/null");
    assert_eq!(line(&mut out), "up");
    child.kill().unwrap();
    child.wait().unwrap();
    // The end of the stream: nobody has it open any more.
    assert_eq!(out.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn what_the_command_leaves_in_its_group_is_ended() {
    let world = World::bare();
    let (mut child, mut out) = started(&world, "tail -f /dev/null & echo up; exit 3");
    assert_eq!(line(&mut out), "up");
    assert_eq!(out.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(child.wait().unwrap().code(), Some(3));
}

#[test]
fn what_cannot_be_started_has_the_exit_code_of_a_shell_or_of_its_cause() {
    let world = World::bare();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let map = |port: u16| format!("{port}=/none.sock");
    let said = |port: u16, command: &str| {
        let mut relay = world.command(program());
        Ended::of(&relay.args(["relay", "--map", &map(port), "--", command]).output().unwrap())
    };
    said(free_port(), "/no/such/command").exits(127).err_has("not found");
    world.write("notes", "no program\n");
    said(free_port(), "./notes").exits(126).err_has("not executable");
    said(taken.local_addr().unwrap().port(), "true").exits(4).err_has("in use");
    for map in ["3128", "0=/a", "3128=a", "x=/a"] {
        world.peers(&["relay", "--map", map, "--", "true"]).exits(2).err_has("an absolute path");
    }
    world.peers(&["relay", "--map", "1=/a"]).exits(2);
}

#[test]
fn in_a_namespace_without_a_network_the_loopback_is_brought_up() {
    let world = World::bare();
    let unshare = ["--user", "--map-root-user", "--net"];
    if !world.command("unshare").args(unshare).arg("true").status().is_ok_and(|status| status.success()) {
        // Nobody may make namespaces here.
        return;
    }
    let path = world.path("host.sock");
    let host = UnixListener::bind(&path).unwrap();
    let served = std::thread::spawn(move || host.accept().unwrap().0.write_all(b"reached\n").unwrap());
    let done = world
        .command("unshare")
        .args(unshare)
        .arg(program())
        .args(["relay", "--map", &format!("3128={}", path.display()), "--", "bash", "-c"])
        .arg("exec 3<>/dev/tcp/127.0.0.1/3128; cat <&3")
        .output()
        .unwrap();
    Ended::of(&done).exits(0).out_has("reached");
    served.join().unwrap();
}
