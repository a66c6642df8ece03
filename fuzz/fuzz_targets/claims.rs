//! See `peers_fuzz::claims`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::claims::check(data));
