//! Files, by Landlock.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetCreated,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::Files;

/// Below this no rule is put up: with it come truncating, moving between directories, and ports.
const LEAST: ABI = ABI::V4;
/// All that the rules name. Of what came after [`LEAST`], what the kernel lacks is left out.
const KNOWN: ABI = ABI::V6;

/// Special files that programs open without a thought.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

pub(super) fn apply(files: &Files) -> Result<(), io::Error> {
    let status = rules(files).map_err(io::Error::other)?;
    match status {
        RulesetStatus::NotEnforced => Err(io::ErrorKind::Unsupported.into()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

fn rules(files: &Files) -> Result<RulesetStatus, RulesetError> {
    let all = AccessFs::from_all(KNOWN);
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::AbstractUnixSocket)?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(&files.read, AccessFs::from_read(KNOWN)))?
        .add_rules(path_beneath_rules(&files.write, all))?
        .add_rules(path_beneath_rules(
            DEVICES,
            AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev,
        ))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Keeps this process from the abstract sockets of all that are not its descendants, as far as the kernel can.
pub(super) fn keep_apart() -> Result<(), io::Error> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort);
    let put_on = rules
        .scope(Scope::AbstractUnixSocket)
        .and_then(Ruleset::create)
        .and_then(RulesetCreated::restrict_self);
    put_on.map(drop).map_err(io::Error::other)
}

pub(super) fn known_here() -> bool {
    let needed = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    needed.handle_access(AccessFs::from_all(LEAST)).and_then(Ruleset::create).is_ok()
}
