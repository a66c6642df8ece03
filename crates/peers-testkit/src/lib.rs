//! Builders and fixtures for tests.
