//! The operating system, made safe: files, locks, processes, identity, signals, clock.
