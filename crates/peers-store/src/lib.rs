//! The trusted store and the .peers projections: journal, snapshot, artifacts.
