//! What a check is.

use peers_model::check::{ArgSpec, Args, CheckSpec, UsageError};

use crate::cx::CheckCx;
use crate::report::Report;

/// A built-in check.
#[derive(Debug)]
pub struct Check {
    /// What goals and the command call it.
    pub name: &'static str,
    /// What holds when it passes.
    pub about: &'static str,
    /// Its own flags.
    pub args: &'static [ArgSpec],
    /// Measures. Total: what fails becomes an answer.
    pub run: fn(&CheckCx, &Args) -> Report,
}

impl Check {
    /// Reads its own flags.
    ///
    /// # Errors
    /// [`UsageError`] for what it does not know.
    pub fn parse(&self, flags: &[String]) -> Result<Args, UsageError> {
        Args::parse(&CheckSpec { name: self.name, args: self.args, reads_record: false }, flags)
    }
}
