#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pathcast_fuzz::far_end::run(data));
