//! The read-model for all observers.
