//! Running a project's tests: which runner it has, how that is started, what its report says.

mod adapter;
mod deselect;
mod report;
mod suite;

pub(crate) use adapter::nothing_planted;
pub(crate) use deselect::{LeftOut, newly_left_out};
pub(crate) use report::{Answer, leaf};
pub(crate) use suite::{NO_PROGRAM, Suite, Told};
