//! What is done to things that hold others.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What somebody does to the rules of a phase. Which rule is counted by its place, modulo their number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum RuleEdit {
    /// Adds one.
    Add {
        /// The request body, without a place.
        body: Value,
        /// Before which one it is put; none: behind the last.
        before: Option<usize>,
    },
    /// Changes fields of one.
    Change {
        /// Which.
        pick: usize,
        /// The fields.
        body: Value,
    },
    /// Moves one.
    Move {
        /// Which.
        pick: usize,
        /// Before which of the others it is put; none: behind the last.
        before: Option<usize>,
    },
    /// Deletes one.
    Delete {
        /// Which.
        pick: usize,
    },
    /// Deletes the entry point with all of them.
    DeleteAll,
}

/// What somebody does to a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum ListEdit {
    /// Makes it.
    Create {
        /// Its items.
        items: Value,
    },
    /// Adds an item.
    Add {
        /// Its address.
        ip: String,
    },
    /// Removes an item.
    Remove {
        /// Its address.
        ip: String,
    },
    /// Describes it.
    Describe {
        /// How.
        text: String,
    },
    /// Deletes it, used or not.
    Delete,
    /// Nobody does anything: Cloudflare does not carry out the next operation on items.
    FailNextOperation,
}

/// What holds what a spec reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputKind {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

impl InputKind {
    /// The Kubernetes kind.
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
        }
    }
}
