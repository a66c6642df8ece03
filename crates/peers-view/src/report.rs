//! `peers report`: the outcome first, then how it came about; and the same of many loops.

mod html;
mod many;
mod one;
mod past;

pub use html::{Patches, reports_html};
pub use many::{Found, ReportEntry, ReportHead, reports_json, reports_markdown};
pub use one::{Report, report_json, report_markdown};
pub(crate) use one::{headline, idle_words};
