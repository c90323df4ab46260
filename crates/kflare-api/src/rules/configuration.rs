//! `ConfigurationRule`: other settings than the zone's for requests that an expression matches.

use kube::{CustomResource, KubeSchema, core::Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RuleBase, RuleStatus};
use crate::schema::tidy;

/// What the user wants of a configuration rule.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "kflare.dev",
    version = "v1alpha1",
    kind = "ConfigurationRule",
    plural = "configurationrules",
    shortname = "cfconfig",
    category = "kflare",
    namespaced,
    status = "RuleStatus",
    derive = "PartialEq",
    doc = "One configuration rule of a zone: other settings than the zone's for the requests that its expression matches.",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zoneRef.name"),
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
pub struct ConfigurationRuleSpec {
    /// What every rule says.
    #[serde(flatten)]
    pub base: RuleBase,
    /// The requests that the rule is about, in Cloudflare's Rules language. `$name` is the `IPList` whose `spec.name` is
    /// `name`; the rule waits for it.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// The settings. Those not set are the zone's.
    #[x_kube(validation = a_setting())]
    pub settings: Settings,
}

/// Settings for requests that a rule matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = tidy)]
pub struct Settings {
    /// How Cloudflare speaks to the origin (`origin_pull`: Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssl: Option<SslMode>,
    /// How readily visitors are challenged (`off`: Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_level: Option<SecurityLevel>,
    /// Rocket Loader: JavaScript is loaded after the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rocket_loader: Option<bool>,
    /// Polish: images are compressed (in Free zones only `off`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polish: Option<Polish>,
    /// Browser Integrity Check: requests with headers that no browser sends are challenged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser_integrity_check: Option<bool>,
    /// Automatic HTTPS Rewrites: links in pages become `https` where that works.
    #[serde(default, rename = "automaticHTTPSRewrites", skip_serializing_if = "Option::is_none")]
    pub automatic_https_rewrites: Option<bool>,
    /// Email Obfuscation: addresses in pages are hidden from robots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_obfuscation: Option<bool>,
    /// Cloudflare Fonts: web fonts are served from the zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fonts: Option<bool>,
    /// Hotlink Protection: other sites cannot show the images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hotlink_protection: Option<bool>,
    /// Opportunistic Encryption: browsers are told that the site is there with TLS too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunistic_encryption: Option<bool>,
    /// `true`: no Real User Monitoring. Leave it out to keep the zone's setting.
    #[serde(default, rename = "disableRUM", skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = only_true("spec.settings.disableRUM"))]
    pub disable_rum: Option<bool>,
    /// `true`: no Zaraz. Leave it out to keep the zone's setting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = only_true("spec.settings.disableZaraz"))]
    pub disable_zaraz: Option<bool>,
    /// How much of a request's body Cloudflare waits for before it passes it on (Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_body_buffering: Option<RequestBodyBuffering>,
    /// How much of a response's body Cloudflare waits for before it passes it on (Enterprise plans).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_body_buffering: Option<ResponseBodyBuffering>,
}

/// How Cloudflare speaks to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SslMode {
    /// Without TLS, to visitors too.
    Off,
    /// Without TLS.
    Flexible,
    /// With TLS, whatever the certificate.
    Full,
    /// With TLS and a certificate that is valid.
    Strict,
    /// With TLS always, whatever the visitor uses.
    OriginPull,
}

/// How readily visitors are challenged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SecurityLevel {
    /// Never.
    Off,
    /// Only the worst.
    EssentiallyOff,
    /// Only the most threatening.
    Low,
    /// The threatening.
    Medium,
    /// All that were a threat lately.
    High,
    /// Everybody, for a zone under attack.
    UnderAttack,
}

/// How images are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Polish {
    /// Not.
    Off,
    /// Without loss.
    Lossless,
    /// With loss.
    Lossy,
    /// As WebP where the browser takes it.
    Webp,
}

/// How much of a request's body is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RequestBodyBuffering {
    /// Nothing: it is passed on as it comes.
    None,
    /// A part, to be looked at.
    Standard,
    /// All.
    Full,
}

/// How much of a response's body is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResponseBodyBuffering {
    /// Nothing: it is passed on as it comes.
    None,
    /// A part.
    Standard,
}

fn a_setting() -> Rule {
    let fields = [
        "ssl",
        "securityLevel",
        "rocketLoader",
        "polish",
        "browserIntegrityCheck",
        "automaticHTTPSRewrites",
        "emailObfuscation",
        "fonts",
        "hotlinkProtection",
        "opportunisticEncryption",
        "disableRUM",
        "disableZaraz",
        "requestBodyBuffering",
        "responseBodyBuffering",
    ];
    let any: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    Rule::new(any.join(" || ")).message("spec.settings must set something, such as spec.settings.ssl")
}

fn only_true(path: &str) -> Rule {
    Rule::new("self").message(format!("{path} can only be true: leave it out to keep the zone's setting").as_str())
}
