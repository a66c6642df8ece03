//! What each fuzz target asserts. A target is a function from bytes to nothing; it panics where a
//! promise of the code under test does not hold. `docs/fuzzing.md` says how to run them.
//!
//! The functions are here and not in the targets so that `cargo test` of this package puts every
//! seed through them without a fuzzer.

pub mod claims;
pub mod config;
pub mod dsl;
pub mod goals;
pub mod proxy;
pub mod streams;

mod problems;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    fn seeds_pass(target: &str, check: fn(&[u8])) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
        let mut seen = 0;
        for entry in fs::read_dir(&dir).expect("the seeds are there") {
            let path = entry.expect("a seed").path();
            let bytes = fs::read(&path).expect("a readable seed");
            assert!(bytes.len() <= 1024, "{} is larger than 1 KiB", path.display());
            check(&bytes);
            seen += 1;
        }
        assert!((1..50).contains(&seen), "{target} has {seen} seeds");
    }

    #[test]
    fn every_seed_keeps_the_promises() {
        seeds_pass("dsl", super::dsl::check);
        seeds_pass("claims", super::claims::check);
        seeds_pass("config", super::config::check);
        seeds_pass("goals", super::goals::check);
        seeds_pass("proxy", super::proxy::check);
        seeds_pass("streams", super::streams::check);
    }
}
