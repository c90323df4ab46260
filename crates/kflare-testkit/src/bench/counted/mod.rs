//! Figures that are counted on the virtual clock. Every function plays one scenario to its end and says what it cost; the same
//! call gives the same figures, on every machine.

mod fairness;
mod flood;
mod mixed;
mod records;
mod stand;
mod takeover;
mod waf_rules;

pub use self::fairness::fairness;
pub use self::flood::{Flood, flood};
pub use self::mixed::two_thousand_mixed;
pub use self::records::{five_thousand_records, thousand_records};
pub use self::stand::BenchError;
pub use self::takeover::takeover;
pub use self::waf_rules::hundred_waf_rules;
