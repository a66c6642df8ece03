//! The executor: performs effects, supervises children, runs gates, drives the machine.
