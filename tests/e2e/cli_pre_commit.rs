//! `peers hook pre-commit`, called by git.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{World, program};

/// `git commit` with `peers` on the search path: whether it committed, and what it said.
fn commit(world: &World) -> (bool, String) {
    let mut path = program().parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let mut command: Command = world.command("git");
    command.args(["-c", "user.name=Op", "-c", "user.email=op@example.invalid", "commit", "-qm", "work"]);
    let out = command.env("PATH", path).output().unwrap();
    (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn an_installed_hook_refuses_a_secret_and_calls_the_one_that_was_there_before() {
    let world = World::ready("true");
    let (hook, marker) = (world.at(".git/hooks/pre-commit"), world.path("called"));
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let own = format!("#!/bin/sh\ntouch {}\ntest ! -e stop\n", marker.display());
    fs::write(&hook, &own).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    world.peers(&["hook", "pre-commit", "--install"]).exits(0);
    world.peers(&["hook", "pre-commit", "--install"]).exits(0).out_has("already");

    let token = ["gh", "p_"].concat() + "aB3dE6gH9jK1mN4pQ7sT0vW2yZaB3dE6gH9j";
    world.write("key.txt", &token);
    world.git(&["add", "key.txt"]);
    let (done, said) = commit(&world);
    assert!(!done && said.contains("the commit was refused: 1 finding") && !said.contains(&token), "{said}");
    assert!(marker.exists(), "the hook of before was called");
    world.write("key.txt", "nothing");
    world.write("stop", "");
    world.git(&["add", "key.txt"]);
    assert!(!commit(&world).0, "the hook of before refuses");
    fs::remove_file(world.at("stop")).unwrap();
    assert_eq!(commit(&world), (true, String::new()));

    world.peers(&["hook", "pre-commit", "--uninstall"]).exits(0);
    assert_eq!(fs::read_to_string(&hook).unwrap(), own);
    world.peers(&["hook", "pre-commit", "--uninstall"]).exits(1);
    world.git(&["config", "core.hooksPath", ".husky"]);
    world.peers(&["hook", "pre-commit", "--install"]).exits(5).err_has("core.hooksPath");
}
