//! `PLAN.md`: the steps that an operator wants, and the commands that prove them.
//!
//! [`parse`] reads bytes that anybody may have written. It tells every error and every doubt at once, each with
//! its line, and gives a [`Plan`] exactly if there is no error. It never fails otherwise, and what it does is
//! linear in the size of the text. The format: `docs/formats/plan.md`.

mod graph;
mod line;
mod meta;
mod model;
mod parse;
mod problem;
#[cfg(test)]
mod properties;
mod steps;
#[cfg(test)]
mod tests;

pub use model::{Mark, Meta, Plan, Progress, Step, Surface};
pub use parse::{LINE, Parsed, parse};
pub use peers_model::StepId;
pub use problem::{PROBLEMS, Problem};
pub use steps::STEPS;
