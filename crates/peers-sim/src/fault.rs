//! Points, faults and schedules.

use std::cell::RefCell;
use std::rc::Rc;

/// What goes wrong at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The loop dies before the operation.
    CrashBefore,
    /// The loop dies after it; what was not synced survives.
    CrashKept,
    /// The loop dies after it; what was not synced is lost.
    CrashLost,
    /// The loop dies in the middle of a write: half of it is there. Elsewhere like `CrashKept`.
    Torn,
    /// The operation fails.
    Fails,
    /// The operation fails since the disk is full. Elsewhere like `Fails`.
    DiskFull,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::CrashBefore, Self::CrashKept, Self::CrashLost, Self::Torn, Self::Fails, Self::DiskFull];
    /// Those after which the process is gone.
    pub const CRASHES: [Self; 4] = [Self::CrashBefore, Self::CrashKept, Self::CrashLost, Self::Torn];
}

/// What the peer of a crashed loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Orphan {
    /// It dies with the loop.
    Dies,
    /// It lives on and does nothing more.
    Lives,
    /// It finishes its work before the next loop looks.
    Finishes,
}

impl Orphan {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Dies, Self::Lives, Self::Finishes];
}

/// One fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// At which point of its process, from 0.
    pub at: u64,
    /// What.
    pub fault: Fault,
    /// And the peer.
    pub orphan: Orphan,
}

/// The payload of the unwinding that stands for a crash.
#[derive(Debug)]
pub struct Crash;

/// Counts points and says what happens at them. Shared by all parts of the world.
#[derive(Debug, Clone, Default)]
pub struct Points(Rc<RefCell<Inner>>);

/// What kind of operation a point stands before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A write that can tear or find the disk full.
    Write,
    /// Anything else that the loop does.
    Other,
    /// Something that the peer does; it cannot fail for the loop.
    Peer,
}

impl Kind {
    /// The faults that differ at such a point.
    #[must_use]
    pub fn faults(self) -> &'static [Fault] {
        match self {
            Self::Write => &Fault::ALL,
            Self::Other => &[Fault::CrashBefore, Fault::CrashKept, Fault::CrashLost, Fault::Fails],
            Self::Peer => &[Fault::CrashBefore, Fault::CrashKept, Fault::CrashLost],
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    /// Kind of each point, and whether a peer was alive there.
    seen: Vec<(Kind, bool)>,
    alive: bool,
    next: u64,
    hit: Option<Hit>,
    lose_unsynced: bool,
    fired: bool,
}

/// What an operation has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Go on.
    Do,
    /// Do half of it, then crash.
    Half,
    /// Do it, then crash.
    ThenCrash,
    /// Fail.
    Fail {
        /// As a full disk does.
        full: bool,
    },
}

impl Points {
    /// A new process: points count from 0 again.
    pub fn begin(&self, hit: Option<Hit>) {
        let alive = self.0.borrow().alive;
        *self.0.borrow_mut() = Inner { alive, hit, ..Inner::default() };
    }

    /// Says whether a peer is alive now.
    pub fn alive(&self, alive: bool) {
        self.0.borrow_mut().alive = alive;
    }

    /// The points of this process: kind, and whether a peer was alive.
    #[must_use]
    pub fn seen(&self) -> Vec<(Kind, bool)> {
        self.0.borrow().seen.clone()
    }

    /// How many points the process passed.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.0.borrow().next
    }

    /// Whether the fault happened.
    #[must_use]
    pub fn fired(&self) -> bool {
        self.0.borrow().fired
    }

    /// Whether the crash lost what was not synced.
    #[must_use]
    pub fn lost(&self) -> bool {
        self.0.borrow().lose_unsynced
    }

    /// Passes a point. Crashes here when the fault comes before the operation.
    #[must_use]
    pub fn pass(&self, kind: Kind) -> Verb {
        let mut inner = self.0.borrow_mut();
        let at = inner.next;
        let alive = inner.alive;
        inner.seen.push((kind, alive));
        inner.next += 1;
        let Some(hit) = inner.hit.filter(|h| h.at == at) else { return Verb::Do };
        inner.fired = true;
        match hit.fault {
            Fault::CrashBefore => {
                drop(inner);
                crash();
            }
            Fault::CrashKept => Verb::ThenCrash,
            Fault::CrashLost => {
                inner.lose_unsynced = true;
                Verb::ThenCrash
            }
            Fault::Torn => Verb::Half,
            Fault::Fails => Verb::Fail { full: false },
            Fault::DiskFull => Verb::Fail { full: true },
        }
    }
}

/// The loop dies here.
pub fn crash() -> ! {
    std::panic::panic_any(Crash)
}
