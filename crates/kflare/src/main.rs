//! The kflare binary.
fn main() {}
