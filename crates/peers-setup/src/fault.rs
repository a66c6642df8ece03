//! Places where a test cuts an operation short: by a failure, or as if the process were killed.

use super::ScaffoldError;

/// Passes a place. Outside of tests nothing ever happens there.
#[cfg_attr(not(test), expect(clippy::unnecessary_wraps, reason = "a test fails here"))]
pub(super) fn at(place: &str) -> Result<(), ScaffoldError> {
    #[cfg(test)]
    return plan::passed(place);
    #[cfg(not(test))]
    {
        let _ = place;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod plan {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    use peers_sys::dir::FileError;

    use super::ScaffoldError;

    /// How the operation is cut short.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Cut {
        Fail,
        Kill,
    }

    #[derive(Debug, Default)]
    struct Plan {
        passed: Vec<String>,
        cut: Option<(usize, Cut)>,
    }

    thread_local! {
        static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
    }

    struct Killed;

    pub(super) fn passed(place: &str) -> Result<(), ScaffoldError> {
        let cut = PLAN.with_borrow_mut(|plan| {
            let plan = plan.as_mut()?;
            plan.passed.push(place.to_owned());
            plan.cut.filter(|(at, _)| *at == plan.passed.len()).map(|(_, cut)| cut)
        });
        match cut {
            None => Ok(()),
            Some(Cut::Fail) => Err(ScaffoldError::File(FileError::Io {
                path: "planned".into(),
                op: "write",
                source: std::io::ErrorKind::StorageFull.into(),
            })),
            Some(Cut::Kill) => resume_unwind(Box::new(Killed)),
        }
    }

    /// Runs it, cut short at the place of this number, counted from 1. Gives its result unless it was killed,
    /// and the places that were passed.
    pub(crate) fn run<T>(cut: Option<(usize, Cut)>, act: impl FnOnce() -> T) -> (Option<T>, Vec<String>) {
        PLAN.set(Some(Plan { passed: Vec::new(), cut }));
        let result = catch_unwind(AssertUnwindSafe(act));
        let passed = PLAN.take().unwrap_or_default().passed;
        match result {
            Ok(value) => (Some(value), passed),
            Err(payload) if payload.is::<Killed>() => (None, passed),
            Err(payload) => resume_unwind(payload),
        }
    }
}
