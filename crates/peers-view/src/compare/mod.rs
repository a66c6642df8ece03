//! `peers-ctl compare`: loops and runs side by side.

mod columns;
mod csv;
mod measured;

pub use columns::{
    CompareColumn, CompareInput, CompareRow, Comparison, Unit, Value, compare, compare_json, compare_page,
    compare_text,
};
pub use csv::compare_csv;
pub use measured::{AtLeast, Measured, run_named};
