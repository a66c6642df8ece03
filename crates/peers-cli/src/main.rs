//! The `peers` command: thin skin over the libraries.
fn main() {}
