//! What the tests stand on: a site, tenants in it, controllers as processes, and the wires they hang on.

pub mod life;
pub mod point;
pub mod proxy;
pub mod site;
pub mod tenant;
pub mod wire;

/// How much is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What fits into every test run.
    Short,
    /// Everything: `KFLARE_CHAOS=full`.
    Full,
}

impl Extent {
    /// What the environment asks for.
    pub fn asked_for() -> Self {
        match std::env::var("KFLARE_CHAOS").as_deref() {
            Err(_) | Ok("" | "short") => Self::Short,
            Ok("full") => Self::Full,
            Ok(other) => panic!("KFLARE_CHAOS is short or full, not {other:?}"),
        }
    }
}
