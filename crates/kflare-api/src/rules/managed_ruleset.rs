//! `ManagedRuleset`: one of Cloudflare's rulesets, in force in a zone.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus};
use crate::schema::{immutable_optional, tidy};

/// What the user wants of a managed ruleset.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "ManagedRuleset",
    plural = "managedrulesets",
    shortname = "cfmanaged",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "Puts one of the rulesets that Cloudflare maintains in force in a zone. Deleting the last one of a zone hands the zone back to Cloudflare's default, which turns the Free Managed Ruleset on: to turn it off, keep the resource and set spec.enabled to false.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Ruleset", type_ = "string", json_path = ".spec.ruleset"),
    printcolumn(name = "Ruleset ID", type_ = "string", json_path = ".spec.rulesetID", priority = 1),
    printcolumn(name = "Enabled", type_ = "boolean", json_path = ".spec.enabled"),
    printcolumn(name = "Rule ID", type_ = "string", json_path = ".status.cloudflareMetadata.ruleID"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
#[x_kube(
    validation = one_name(),
    validation = immutable_optional("ruleset"),
    validation = immutable_optional("rulesetID")
)]
pub struct ManagedRulesetSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// Id of the ruleset: 32 hexadecimal digits. For rulesets that `spec.ruleset` has no name for.
    #[serde(default, rename = "rulesetID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^[0-9a-f]{32}$"))]
    pub ruleset_id: Option<String>,
    /// Name of the ruleset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruleset: Option<KnownRuleset>,
    /// The requests that the ruleset looks at, in Cloudflare's Rules language. `true`: all. `$name` is the `IPList` whose
    /// `spec.name` is `name`; the rule waits for it.
    #[serde(default = "all_requests")]
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What is otherwise than in the ruleset. Unset: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(
        validation = overrides_say_something(),
        validation = category_overrides_say_something(),
        validation = rule_overrides_say_something()
    )]
    pub overrides: Option<Overrides>,
}

fn all_requests() -> String {
    "true".to_owned()
}

/// A ruleset that Cloudflare maintains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KnownRuleset {
    /// The Cloudflare Managed Ruleset (not in Free zones).
    CloudflareManaged,
    /// The Cloudflare Free Managed Ruleset (every plan).
    CloudflareManagedFree,
    /// The Cloudflare OWASP Core Ruleset (not in Free zones).
    Owasp,
    /// The Cloudflare Exposed Credentials Check (not in Free zones).
    ExposedCredentialsCheck,
}

impl KnownRuleset {
    /// Every one of them.
    pub const ALL: [Self; 4] = [
        Self::CloudflareManaged,
        Self::CloudflareManagedFree,
        Self::Owasp,
        Self::ExposedCredentialsCheck,
    ];

    /// Cloudflare's id, the same in every account.
    ///
    /// Source: <https://developers.cloudflare.com/waf/managed-rules/#available-managed-rulesets>.
    pub const fn id(self) -> &'static str {
        match self {
            Self::CloudflareManaged => "efb7b8c949ac4650a09736fc376e9aee",
            Self::CloudflareManagedFree => "77454fe2d30c4220b5701f6fdfb893ba",
            Self::Owasp => "4814384a9e5d4991b9815dcfc25d2f1f",
            Self::ExposedCredentialsCheck => "c2e184081120413c86c3ab7e14069605",
        }
    }
}

/// What is otherwise than in the ruleset. A rule override beats one of a category, and that one beats these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Overrides {
    /// Action of every rule, such as `block`, `managed_challenge` or `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^[a-z_]+$"))]
    pub action: Option<String>,
    /// Whether rules are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Sensitivity of every rule (rulesets against DDoS only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity_level: Option<SensitivityLevel>,
    /// For the rules of a category.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["category".into()]))]
    pub categories: Vec<CategoryOverride>,
    /// For single rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 500))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["id".into()]))]
    pub rules: Vec<RuleOverride>,
}

/// What is otherwise in the rules of a category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct CategoryOverride {
    /// The category (tag), such as `wordpress` or `paranoia-level-3`.
    #[schemars(length(min = 1, max = 128))]
    pub category: String,
    /// Action of its rules, such as `block`, `managed_challenge` or `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^[a-z_]+$"))]
    pub action: Option<String>,
    /// Whether its rules are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Sensitivity of its rules (rulesets against DDoS only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity_level: Option<SensitivityLevel>,
}

/// What is otherwise in a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct RuleOverride {
    /// Id of the rule in the managed ruleset: 32 hexadecimal digits.
    #[schemars(length(max = 32), regex(pattern = "^[0-9a-f]{32}$"))]
    pub id: String,
    /// Its action, such as `block`, `managed_challenge` or `log`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), regex(pattern = "^[a-z_]+$"))]
    pub action: Option<String>,
    /// Whether it is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The score from which it acts (the OWASP ruleset's anomaly score).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub score_threshold: Option<i32>,
    /// Its sensitivity (rulesets against DDoS only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity_level: Option<SensitivityLevel>,
}

/// How easily a rule acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SensitivityLevel {
    /// As Cloudflare sets it.
    Default,
    /// Medium.
    Medium,
    /// Low.
    Low,
    /// Essentially off.
    Eoff,
}

fn one_name() -> Rule {
    Rule::new("has(self.rulesetID) != has(self.ruleset)").message("set exactly one of spec.ruleset and spec.rulesetID")
}

fn overrides_say_something() -> Rule {
    Rule::new(
        "has(self.action) || has(self.enabled) || has(self.sensitivityLevel) \
         || (has(self.categories) && size(self.categories) > 0) || (has(self.rules) && size(self.rules) > 0)",
    )
    .message("spec.overrides must override something: set action, enabled, sensitivityLevel, categories or rules, or leave it out")
}

fn category_overrides_say_something() -> Rule {
    Rule::new(
        "!has(self.categories) || self.categories.all(it, has(it.action) || has(it.enabled) || has(it.sensitivityLevel))",
    )
    .message("each of spec.overrides.categories must override something: set action, enabled or sensitivityLevel")
}

fn rule_overrides_say_something() -> Rule {
    Rule::new(
        "!has(self.rules) || self.rules.all(it, has(it.action) || has(it.enabled) || has(it.scoreThreshold) \
         || has(it.sensitivityLevel))",
    )
    .message(
        "each of spec.overrides.rules must override something: set action, enabled, scoreThreshold or sensitivityLevel",
    )
}
