//! `WAFCustomRule`: what happens to requests that an expression matches.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BlockResponse, RuleBase, RuleStatus};
use crate::schema::{forbids, requires, tidy};

/// What the user wants of a WAF custom rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "WAFCustomRule",
    plural = "wafcustomrules",
    shortname = "cfwaf",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One WAF custom rule of a zone: blocks, challenges, logs or lets through the requests that its expression matches.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(name = "Expression", type_ = "string", json_path = ".spec.expression", priority = 1),
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
    validation = response_needs_block(),
    validation = skip_says_what(),
    validation = what_to_skip_needs_skip(),
    validation = logging_needs_skip()
)]
pub struct WAFCustomRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What happens to them.
    pub action: WAFAction,
    /// How it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ruleset_excludes_phases())]
    pub action_parameters: Option<WAFActionParameters>,
    /// Whether skipped requests are logged (action `skip` only). Unset: kflare leaves it
    /// alone; a new rule logs them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logging: Option<Logging>,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WAFAction {
    /// Refused.
    Block,
    /// The visitor solves an interactive challenge.
    Challenge,
    /// The browser solves a challenge in JavaScript.
    JsChallenge,
    /// Cloudflare picks the challenge.
    ManagedChallenge,
    /// Only logged (Enterprise plans).
    Log,
    /// Other security features are skipped.
    Skip,
}

/// How the action happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct WAFActionParameters {
    /// The answer to a blocked request (action `block` only). Unset: Cloudflare's own page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<BlockResponse>,
    /// `current`: all remaining WAF custom rules are skipped (action `skip` only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruleset: Option<SkippedRuleset>,
    /// Phases that are skipped, such as `http_ratelimit`, `http_request_sbfm` or `http_request_firewall_managed` (action
    /// `skip` only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64), regex(pattern = "^[a-z0-9_]+$")))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub phases: Vec<String>,
    /// Older security products that are skipped (action `skip` only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub products: Vec<SkippedProduct>,
}

/// Which rules are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SkippedRuleset {
    /// Those of this phase that come later.
    Current,
}

/// A security product that is no phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SkippedProduct {
    /// Zone Lockdown.
    ZoneLockdown,
    /// User Agent Blocking.
    UaBlock,
    /// Browser Integrity Check.
    Bic,
    /// Hotlink Protection.
    Hot,
    /// Security Level.
    SecurityLevel,
    /// Rate limiting (the version before rate limiting rules).
    RateLimit,
    /// Managed rules (the version before managed rulesets).
    Waf,
}

/// Whether matching requests are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Logging {
    /// `true`: matching requests are in the security events.
    pub enabled: bool,
}

fn response_needs_block() -> Rule {
    forbids(
        "!has(self.actionParameters) || !has(self.actionParameters.response) || self.action == 'block'".into(),
        ".actionParameters.response",
        "spec.actionParameters.response is possible for spec.action block only: leave it out",
    )
}

fn skip_says_what() -> Rule {
    requires(
        "self.action != 'skip' || (has(self.actionParameters) && (has(self.actionParameters.ruleset) \
         || (has(self.actionParameters.phases) && size(self.actionParameters.phases) > 0) \
         || (has(self.actionParameters.products) && size(self.actionParameters.products) > 0)))"
            .into(),
        ".actionParameters",
        "spec.action skip needs what to skip: set spec.actionParameters.ruleset to current, or name phases or products",
    )
}

fn what_to_skip_needs_skip() -> Rule {
    forbids(
        "self.action == 'skip' || !has(self.actionParameters) || !(has(self.actionParameters.ruleset) \
         || has(self.actionParameters.phases) || has(self.actionParameters.products))"
            .into(),
        ".actionParameters",
        "spec.actionParameters.ruleset, phases and products are possible for spec.action skip only: leave them out",
    )
}

fn logging_needs_skip() -> Rule {
    forbids(
        "!has(self.logging) || self.action == 'skip'".into(),
        ".logging",
        "spec.logging is possible for spec.action skip only: all other actions are always logged",
    )
}

fn ruleset_excludes_phases() -> Rule {
    forbids(
        "!has(self.ruleset) || !has(self.phases) || size(self.phases) == 0".into(),
        ".phases",
        "spec.actionParameters.phases cannot be combined with spec.actionParameters.ruleset: Cloudflare takes one of them",
    )
}
