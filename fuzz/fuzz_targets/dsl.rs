//! See `peers_fuzz::dsl`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::dsl::check(data));
