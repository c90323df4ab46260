//! The rule kinds: one resource is one rule in the entry point of its zone and phase.
//!
//! | module | holds |
//! | --- | --- |
//! | [`adapter`] | how rules are read and written, the same for all |
//! | [`rule`] | a rule in canonical form, and the mark by which kflare knows its own |
//! | [`canonical`] | parameters of actions in canonical form, and back |
//! | [`expression`] | the lists that an expression names |
//! | `waf_custom` and the others | one kind each: its phase, and its action out of the spec |

pub mod adapter;
pub mod cache;
pub mod canonical;
pub mod configuration;
pub mod expression;
pub mod managed_ruleset;
pub mod origin;
pub mod rate_limit;
pub mod redirect;
pub mod rule;
pub mod transform;
pub mod waf_custom;

#[cfg(test)]
mod law;
#[cfg(test)]
mod specs;

use kflare_api::rules::RuleBase;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use adapter::RuleAdapter;

/// What a rule does, in Cloudflare's names, before it is brought into canonical form. `null` is what the spec leaves out and
/// Cloudflare is to leave out too.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// `block`, `rewrite` and so on.
    pub name: Value,
    /// Its parameters.
    pub parameters: Value,
    /// What is counted (rate limiting only).
    pub ratelimit: Option<Value>,
    /// Whether matching requests are logged, where the spec says so.
    pub logging: Option<bool>,
}

impl Action {
    /// An action with parameters and nothing else.
    pub fn new(name: impl Into<Value>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            parameters,
            ratelimit: None,
            logging: None,
        }
    }
}

/// A kind whose resources are rules.
pub trait RuleKind: Send + Sync + 'static {
    /// The spec of its resources.
    type Spec: DeserializeOwned + Send + Sync;
    /// CamelCase kind.
    const KIND: &'static str;
    /// Plural, as in the API path.
    const PLURAL: &'static str;
    /// What is said when the last rule of the phase is deleted, if that has a meaning of its own.
    const LAST_ONE: Option<&'static str> = None;

    /// What every rule says.
    fn base(spec: &Self::Spec) -> &RuleBase;

    /// The requests that the rule is about.
    fn expression(spec: &Self::Spec) -> &str;

    /// Other expressions that the rule has.
    fn more_expressions(_spec: &Self::Spec) -> Vec<&str> {
        Vec::new()
    }

    /// The phase that the rule is in.
    fn phase(spec: &Self::Spec) -> &'static str;

    /// What the rule does.
    fn action(spec: &Self::Spec) -> Action;
}
