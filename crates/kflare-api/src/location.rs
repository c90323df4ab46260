//! Where Cloudflare is asked to keep data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A region. Cloudflare takes it as a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LocationHint {
    /// Western North America.
    Wnam,
    /// Eastern North America.
    Enam,
    /// Western Europe.
    Weur,
    /// Eastern Europe.
    Eeur,
    /// Asia and the Pacific.
    Apac,
    /// Oceania.
    Oc,
}

/// Where, by law, a database or queue may run and keep data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Jurisdiction {
    /// The European Union.
    Eu,
    /// The United States.
    Us,
    /// Data centres that comply with `FedRAMP`.
    Fedramp,
}
