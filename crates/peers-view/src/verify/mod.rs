//! The report of `peers verify`: one value, and a rendering of it for each reader.
//!
//! A rendering is a function of the report alone: no clock, no order but that of the files. So two runs
//! with the same verdicts on the same tree give the same bytes (ADR 0022). Names and diagnostics were
//! written by whatever a gate ran; each rendering escapes them for its own format. Start reading at
//! [`VerifyReport`].

mod data;
mod github;
mod junit;
mod lines;
mod markdown;
mod place;
mod report;
mod sarif;
mod xml;

#[cfg(test)]
mod tests;

pub use data::verify_json;
pub use github::{verify_github, without_commands};
pub use junit::verify_junit;
pub use lines::Lines;
pub use markdown::verify_markdown;
pub use report::{Answer, RowState, Source, Unasked, VerifyReport, VerifyRow};
pub use sarif::verify_sarif;
