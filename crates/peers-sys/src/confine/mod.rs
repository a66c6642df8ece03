//! What a child may do: the stub puts it on itself before it becomes the program, and nothing takes it off again.
//!
//! Files by Landlock, calls of the kernel by seccomp; both are inherited by all descendants. A rule names places by
//! path, as they are when the child starts. What a rule names and is not there is left out.

#[cfg(target_os = "linux")]
mod caps;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod filter;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// What a child may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Confine {
    /// Files, each with all below it.
    pub files: Option<Files>,
    /// Calls of the kernel that no program of a project needs are refused.
    pub filter: Option<Filter>,
    /// Abstract sockets of others are not reached, from Linux 6.12 on. Comes with [`Confine::files`] by itself.
    pub apart: bool,
}

/// The places that a child sees; no others are there for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// Read and executed.
    pub read: Vec<PathBuf>,
    /// Written, and read.
    pub write: Vec<PathBuf>,
}

/// How much the kernel refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// What only debuggers, drivers and administrators do.
    Usual,
    /// And new namespaces, which sandboxes of browsers need.
    Strict,
}

const READ: &str = "--read";
const WRITE: &str = "--write";
const SEES: &str = "--sees-only";
const FILTER: &str = "--filter";
const APART: &str = "--apart";

impl Filter {
    /// Its name in configuration and on command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "default",
            Self::Strict => "strict",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Usual, Self::Strict].into_iter().find(|filter| filter.name() == name)
    }
}

impl Confine {
    /// Puts it on this process, for good. Call it while there is one thread.
    ///
    /// # Errors
    /// The step that failed, and why. What was put on before stays.
    #[cfg(target_os = "linux")]
    pub fn apply(&self) -> Result<(), (&'static str, io::Error)> {
        if let Some(files) = &self.files {
            caps::give_up().map_err(|error| ("capabilities", error))?;
            files::apply(files).map_err(|error| ("landlock", error))?;
        } else if self.apart {
            files::keep_apart().map_err(|error| ("landlock", error))?;
        }
        if let Some(kind) = self.filter {
            filter::apply(kind).map_err(|error| ("seccomp", error))?;
        }
        Ok(())
    }

    /// Refuses where anything is asked: this system has neither.
    ///
    /// # Errors
    /// Always, unless nothing is asked.
    #[cfg(not(target_os = "linux"))]
    pub fn apply(&self) -> Result<(), (&'static str, io::Error)> {
        if *self == Self::default() {
            return Ok(());
        }
        Err(("confine", io::ErrorKind::Unsupported.into()))
    }

    /// The options of a stub that [`Confine::take`] reads.
    pub(crate) fn to_args(&self) -> Vec<OsString> {
        let mut out: Vec<OsString> = Vec::new();
        if let Some(files) = &self.files {
            out.push(SEES.into());
            for (option, paths) in [(READ, &files.read), (WRITE, &files.write)] {
                out.extend(paths.iter().flat_map(|path| [option.into(), path.clone().into_os_string()]));
            }
        }
        if self.apart {
            out.push(APART.into());
        }
        if let Some(filter) = self.filter {
            out.extend([FILTER.into(), filter.name().into()]);
        }
        out
    }

    /// Takes an option with its value in; `None` where it is none of these or has no good value.
    pub(crate) fn take(&mut self, option: &str, rest: &mut impl Iterator<Item = OsString>) -> Option<()> {
        match option {
            SEES => drop(self.files.get_or_insert_default()),
            APART => self.apart = true,
            READ => self.files.as_mut()?.read.push(rest.next()?.into()),
            WRITE => self.files.as_mut()?.write.push(rest.next()?.into()),
            FILTER => self.filter = Some(Filter::named(rest.next()?.to_str()?)?),
            _ => return None,
        }
        Some(())
    }
}

/// From now on no other process of this user reads our memory or environment, and no core is written.
///
/// # Errors
/// When the system does not allow it.
pub fn hide_memory() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Whether this system has Landlock, in its fourth version (Linux 6.7) or later.
#[must_use]
pub fn has_landlock() -> bool {
    #[cfg(target_os = "linux")]
    {
        files::known_here()
    }
    #[cfg(not(target_os = "linux"))]
    {
        false
    }
}
