//! The program as it is installed. This file also makes `cargo test` build it for the end-to-end tests.

use std::process::Command;

#[test]
fn it_answers() {
    let done = Command::new(env!("CARGO_BIN_EXE_peers-ctl")).arg("--version").output().unwrap();
    assert!(done.status.success());
    assert_eq!(String::from_utf8_lossy(&done.stdout), format!("peers-ctl {}\n", env!("CARGO_PKG_VERSION")));
}
