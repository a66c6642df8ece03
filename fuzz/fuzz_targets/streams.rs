//! See `peers_fuzz::streams`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::streams::check(data));
