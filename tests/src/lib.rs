//! End-to-end tests; see `e2e/`.
