//! `peers tmux`, with a real tmux on a socket of its own.

use std::process::Command;

use crate::support::{Ended, World, program};

/// A tmux server of this test alone, ended with the value.
struct Server<'w> {
    world: &'w World,
}

impl Server<'_> {
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.world.command(program);
        command.env("TMUX_TMPDIR", self.world.path("home")).env("SHELL", "/bin/sh");
        command
    }

    fn peers(&self, what: &str) -> Ended {
        Ended::of(&self.command(program()).args(["tmux", what, "--socket", "test"]).output().unwrap())
    }

    fn tmux(&self, args: &[&str]) -> String {
        let done = self.command("tmux").args(["-L", "test"]).args(args).output().unwrap();
        Ended::of(&done).exits(0).out
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // Gone already where the last session was ended.
        let _over = self.command("tmux").args(["-L", "test", "kill-server"]).output();
    }
}

#[test]
fn a_session_is_started_once_and_ended_once() {
    let world = World::ready("true");
    if world.command("tmux").arg("-V").output().is_err() {
        eprintln!("tmux is not there: nothing was tried");
        return;
    }
    let server = Server { world: &world };
    server.peers("down").exits(1);
    assert!(server.peers("attach").exits(1).err.contains("`peers tmux up`"));
    let up = server.peers("up").exits(0);
    assert_eq!(up.out, "peers-repo\n");
    let windows = server.tmux(&["list-windows", "-t", "=peers-repo", "-F", "#{window_name} #{window_panes}"]);
    assert_eq!(windows, "watch 3\nann 1\nben 1\n");
    let panes = server.tmux(&["list-panes", "-t", "=peers-repo:watch", "-F", "#{pane_start_command}"]);
    assert_eq!(panes.lines().filter(|pane| pane.contains("watch")).count(), 3, "{panes}");
    server.peers("up").exits(4).err_has("`peers tmux down`");
    server.peers("down").exits(0);
    server.peers("down").exits(1);
}

#[test]
fn no_session_is_made_of_what_nobody_accepted_or_what_is_not_there() {
    let world = World::ready("true");
    let mark = world.path("started");
    // Neither tmux nor the program of a peer is called.
    for name in ["tmux", "claude"] {
        world.executable(&format!("bin/{name}"), &format!("echo $0 >> '{}'", mark.display()));
    }
    let up = || {
        let path = World::search_path(&world.path("bin"));
        Ended::of(&world.command(program()).args(["tmux", "up"]).env("PATH", path).output().unwrap())
    };
    let config = world.config("").replacen("tool: plain", "tool: claude", 1);
    world.write(".peers/config.yaml", &config.replacen(program().to_str().unwrap(), "claude", 1));
    let refused = up().exits(5);
    for says in ["config.yaml changed since it was accepted", "`peers goals accept`"] {
        assert!(refused.err.contains(says), "{says}: {}", refused.err);
    }
    assert!(!mark.exists(), "{}", std::fs::read_to_string(&mark).unwrap());

    // Accepted, and what the second peer's window would run is not there.
    let missing = config.replacen(program().to_str().unwrap(), "claude", 1);
    let missing = missing.replacen("tool: plain", "tool: codex", 1);
    let missing = missing.replacen(program().to_str().unwrap(), "/nowhere/codex", 1);
    world.write(".peers/config.yaml", &missing);
    world.accept(&[]);
    let refused = up().exits(6);
    refused.err_has("peer `ben`: ").err_has("/nowhere/codex");
    refused.err_has("nothing was started").err_lacks("`ann`");
    assert!(!mark.exists(), "{}", std::fs::read_to_string(mark).unwrap());
}

#[test]
fn without_tmux_the_environment_is_missing() {
    let world = World::ready("true");
    let empty = world.path("home");
    let done = Ended::of(&world.command(program()).args(["tmux", "up"]).env("PATH", empty).output().unwrap());
    assert!(done.exits(6).err.contains("install tmux"));
    World::repo().peers(&["tmux", "up"]).exits(3);
}
