//! See `peers_fuzz::proxy`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| peers_fuzz::proxy::check(data));
