//! Processes as they are known outside of a container.

use super::{BootId, Pid, ProcIdentity};

/// The variable by which a loop in a container of its own knows its keeper.
pub(crate) const KEEPER: &str = "PEERS_KEEPER";

impl ProcIdentity {
    /// One word that names this process and no other one; absent where too little is known of it.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        let Self { pid, start_time, boot_id, .. } = self;
        Some(format!("{pid}.{}.{}", (*start_time)?, boot_id.as_ref()?))
    }

    /// The process that such a word names. Whether it is there is not looked at.
    #[must_use]
    pub fn of_label(label: &str) -> Option<Self> {
        let mut parts = label.splitn(3, '.');
        let pid = Pid::new(parts.next()?.parse().ok()?)?;
        let start_time = Some(parts.next()?.parse().ok()?);
        let boot_id = Some(BootId(parts.next()?.to_owned()));
        Some(Self { pid, start_time, boot_id, pgid: None, session: None })
    }

    /// Who this process is for whoever looks from outside: the keeper of its container, which passes signals on and
    /// holds its lock as well; else itself. Absent where the system does not tell.
    #[must_use]
    pub fn known_as() -> Option<Self> {
        keeper().or_else(|| Self::of_self().ok())
    }

    /// The process id of that one.
    #[must_use]
    pub fn known_pid() -> u32 {
        let pid = keeper().and_then(|keeper| u32::try_from(keeper.pid.get()).ok());
        pid.unwrap_or_else(std::process::id)
    }
}

/// Whether this process is a loop in a container of its own.
#[must_use]
pub fn is_kept_loop() -> bool {
    keeper().is_some()
}

fn keeper() -> Option<ProcIdentity> {
    ProcIdentity::of_label(std::env::var_os(KEEPER)?.to_str()?)
}
