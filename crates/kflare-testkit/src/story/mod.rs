//! Stories: seeded tales of users, neighbours and faults, played against the whole controller, and the rules that must hold
//! in every one of them.
//!
//! A [`Story`] is data. [`story`] makes one up from a seed, [`play`] plays it on a virtual clock and says which rules were
//! broken, [`shrink`] makes a story that breaks a rule shorter. The rules ([`Rule`]) are checked against an independent book
//! ([`ledger`]) of who made what and who asked for what, kept at the seams, so that they do not believe the engine.

mod act;
mod after;
mod cast;
mod enact;
mod generate;
mod holdings;
mod identity;
mod ledger;
mod lists;
mod perform;
mod rule;
mod rulesets;
mod shrink;
mod stores;
mod transforms;
mod tunnels;
mod twins;
mod vocabulary;
mod wanted;
mod workers;

pub use act::{Act, ApiFault, Cut, InputKind, KillPoint, ListEdit, RuleEdit, Setting, Step, Story, Target};
pub use generate::story;
pub use holdings::Holdings;
pub use perform::{Outcome, play};
pub use rule::{Rule, Violation};
pub use shrink::shrink;
