//! The built-in checks that goals name.
