//! Says how the program is linked.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    // The program starts itself for each child. Its 42,000 relocations take an
    // eightieth of the space in the packed form (DT_RELR). Linkers that do not know it ignore it.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    // Functions of the same code are kept once: 0.37 MB less. Other linkers than lld refuse the option.
    if env::var("PROFILE").is_ok_and(|profile| profile == "release") && links_with_lld() {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// Whether this toolchain links this target with the lld that it brings, and nobody chose another linker.
fn links_with_lld() -> bool {
    const TARGET: &str = "x86_64-unknown-linux-gnu";
    let chosen = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    if env::var("TARGET").as_deref() != Ok(TARGET)
        || env::var_os("RUSTC_LINKER").is_some()
        || ["linker", "fuse-ld"].iter().any(|word| chosen.contains(word))
    {
        return false;
    }
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(said) = Command::new(rustc).args(["--print", "sysroot"]).output() else { return false };
    let sysroot = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    Path::new(&sysroot).join("lib/rustlib").join(TARGET).join("bin/gcc-ld/ld.lld").exists()
}
