//! Who asks for something, as it is recorded.

use peers_sys::dir::SafeDir;
use peers_sys::env::Env;
use peers_sys::term;

/// Cells of a name.
const NAME: usize = 64;

/// The login name of who asks, else the number of the user.
#[must_use]
pub fn name(env: &Env) -> String {
    let named = ["USER", "LOGNAME"].iter().filter_map(|name| env.text(name));
    let name = named.map(str::trim).find(|name| !name.is_empty()).map(str::to_owned);
    let name = name.or_else(|| user_id().map(|id| format!("uid {id}")));
    term::line(&name.unwrap_or_else(|| "unknown".to_owned()), NAME)
}

/// The user that this process runs as, where the system tells.
fn user_id() -> Option<u32> {
    let proc = SafeDir::open_shared("/proc").ok()?;
    Some(proc.stat(std::process::id().to_string()).ok()??.owner)
}
