//! Written by the process half.
