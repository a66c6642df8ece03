//! See `peers_fuzz::goals`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::goals::check(data));
