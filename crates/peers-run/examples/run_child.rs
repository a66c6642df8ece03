//! What the tests of this crate start children with: the spawn stub, the bridge, and a stand-in for the checks.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(first) if first == peers_sys::stub::ENTRY => peers_sys::stub::main(args),
        Some(first) if first == peers_sys::stub::ENTER => peers_sys::stub::enter(args),
        Some(first) if first == peers_acp::ENTRY => peers_acp::main(args),
        Some(first) if first == peers_run::measure::ENTRY => {
            peers_run::measure::main(std::io::stdin(), std::io::stdout())
        }
        Some(first) if first == peers_run::primer::ENTRY => peers_run::primer::main(args),
        Some(first) if first == "check" => check(args.collect()),
        _ => ExitCode::from(2),
    }
}

/// Prints its arguments as the one finding of a report, and exits with the code that its name ends in.
fn check(args: Vec<OsString>) -> ExitCode {
    let words: Vec<String> = args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let name = words.first().cloned().unwrap_or_default();
    let code = name.rsplit('-').next().and_then(|code| code.parse().ok()).unwrap_or(0);
    let finding = serde_json::json!({ "path": "args", "kind": "seen", "message": words.join(" ") });
    let report = serde_json::json!({ "check": name, "verdict": "fail", "findings": [finding] });
    // A reader that has gone has seen enough.
    let _gone = writeln!(std::io::stdout(), "{report}");
    ExitCode::from(code)
}
