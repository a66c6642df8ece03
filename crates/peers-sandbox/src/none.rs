//! The backend `none`: a process group of its own and exactly the environment that was given.

use peers_sys::spawn::{Spawn, StubProgram};

use crate::port::{ExecError, ExecSpec, Ran, Sandbox};
use crate::watched::run_watched;

/// Confines nothing.
#[derive(Debug, Clone)]
pub struct Unconfined {
    stub: StubProgram,
}

impl Unconfined {
    /// `stub` becomes the program.
    #[must_use]
    pub fn new(stub: StubProgram) -> Self {
        Self { stub }
    }
}

impl Sandbox for Unconfined {
    fn run(&self, spec: &ExecSpec) -> Result<Ran, ExecError> {
        let (program, args) = spec.argv.split_first().ok_or(ExecError::Empty)?;
        let mut spawn = Spawn::new(self.stub.clone(), program, &spec.cwd);
        spawn.args = args.to_vec();
        spawn.env.clone_from(&spec.env);
        run_watched(&spawn, spec.limit)
    }
}
