//! See `peers_fuzz::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::config::check(data));
