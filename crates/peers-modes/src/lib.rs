//! Embedded templates and laying them down in a target repository.
