#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pathcast_fuzz::echoes::run(data));
