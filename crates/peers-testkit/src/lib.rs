//! What tests of several crates share. Only ever a dev-dependency.
#![expect(clippy::expect_used, clippy::missing_panics_doc, reason = "only tests run this")]

pub mod reference;
