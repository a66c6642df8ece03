//! Many loops at once: as a list, as a dashboard, and one of them in more detail.

mod all;
mod dashboard;
mod details;
mod grid;
mod list;

pub use all::{Fleet, FleetWarning, Summary, dashboard_json, dashboard_line, sort_by_attention};
pub use dashboard::dashboard_text;
pub use details::{Passed, ProjectDetails, project_json, project_text};
pub use list::list_text;
