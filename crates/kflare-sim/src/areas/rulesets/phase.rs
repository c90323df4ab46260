//! The modelled phases: what rules in them may do, how many there may be, and who may write them.

use serde::{Deserialize, Serialize};

use super::error;
use crate::envelope::Refusal;
use crate::plan::Plan;
use crate::state::Area;

/// A phase of the handling of a request in which a zone can have rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// WAF custom rules.
    HttpRequestFirewallCustom,
    /// Rate limiting rules.
    HttpRatelimit,
    /// Deployments of managed rulesets.
    HttpRequestFirewallManaged,
    /// URL rewrites.
    HttpRequestTransform,
    /// Changes to request headers.
    HttpRequestLateTransform,
    /// Changes to response headers.
    HttpResponseHeadersTransform,
    /// Single redirects.
    HttpRequestDynamicRedirect,
    /// Cache rules.
    HttpRequestCacheSettings,
    /// Configuration rules.
    HttpConfigSettings,
    /// Origin rules.
    HttpRequestOrigin,
}

/// Phases that Cloudflare has and the simulator does not model.
const NOT_MODELLED: [&str; 16] = [
    "ddos_l4",
    "ddos_l7",
    "http_custom_errors",
    "http_log_custom_fields",
    "http_request_redirect",
    "http_request_sanitize",
    "http_request_sbfm",
    "http_request_select_configuration",
    "http_response_cache_settings",
    "http_response_compression",
    "http_response_firewall_managed",
    "http_request_cloud_connector",
    "magic_transit",
    "magic_transit_ids_managed",
    "magic_transit_managed",
    "magic_transit_ratelimit",
];

/// Every action there is, in any phase.
pub(super) const ACTIONS: [&str; 20] = [
    "block",
    "challenge",
    "compress_response",
    "ddos_dynamic",
    "execute",
    "force_connection_close",
    "js_challenge",
    "log",
    "log_custom_field",
    "managed_challenge",
    "redirect",
    "rewrite",
    "route",
    "score",
    "serve_error",
    "set_cache_control",
    "set_cache_settings",
    "set_cache_tags",
    "set_config",
    "skip",
];

impl Phase {
    /// Every modelled phase.
    pub const ALL: [Self; 10] = [
        Self::HttpRequestFirewallCustom,
        Self::HttpRatelimit,
        Self::HttpRequestFirewallManaged,
        Self::HttpRequestTransform,
        Self::HttpRequestLateTransform,
        Self::HttpResponseHeadersTransform,
        Self::HttpRequestDynamicRedirect,
        Self::HttpRequestCacheSettings,
        Self::HttpConfigSettings,
        Self::HttpRequestOrigin,
    ];

    /// Cloudflare's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HttpRequestFirewallCustom => "http_request_firewall_custom",
            Self::HttpRatelimit => "http_ratelimit",
            Self::HttpRequestFirewallManaged => "http_request_firewall_managed",
            Self::HttpRequestTransform => "http_request_transform",
            Self::HttpRequestLateTransform => "http_request_late_transform",
            Self::HttpResponseHeadersTransform => "http_response_headers_transform",
            Self::HttpRequestDynamicRedirect => "http_request_dynamic_redirect",
            Self::HttpRequestCacheSettings => "http_request_cache_settings",
            Self::HttpConfigSettings => "http_config_settings",
            Self::HttpRequestOrigin => "http_request_origin",
        }
    }

    /// The phase of this name.
    pub(super) fn find(name: &str) -> Result<Self, Refusal> {
        if let Some(phase) = Self::ALL.into_iter().find(|phase| phase.name() == name) {
            return Ok(phase);
        }
        Err(if is_known(name) {
            error::not_modelled(&format!("rules in the phase {name}"))
        } else {
            error::unknown_phase(name)
        })
    }

    /// The actions that rules in it may have.
    pub(super) fn actions(self) -> &'static [&'static str] {
        match self {
            Self::HttpRequestFirewallCustom => &[
                "block",
                "challenge",
                "js_challenge",
                "managed_challenge",
                "log",
                "skip",
                "execute",
            ],
            Self::HttpRatelimit => &["block", "challenge", "js_challenge", "managed_challenge", "log"],
            Self::HttpRequestFirewallManaged => &["execute", "skip"],
            Self::HttpRequestTransform | Self::HttpRequestLateTransform | Self::HttpResponseHeadersTransform => {
                &["rewrite"]
            }
            Self::HttpRequestDynamicRedirect => &["redirect"],
            Self::HttpRequestCacheSettings => &["set_cache_settings"],
            Self::HttpConfigSettings => &["set_config"],
            Self::HttpRequestOrigin => &["route"],
        }
    }

    /// What a token needs a permission for. Cloudflare calls them, in this order: Zone WAF; Zone Transform Rules; Dynamic
    /// URL Redirects (Single Redirect); Cache Settings; Config Settings; Origin.
    pub(super) fn area(self) -> Area {
        match self {
            Self::HttpRequestFirewallCustom | Self::HttpRatelimit | Self::HttpRequestFirewallManaged => Area::Waf,
            Self::HttpRequestTransform | Self::HttpRequestLateTransform | Self::HttpResponseHeadersTransform => {
                Area::Transform
            }
            Self::HttpRequestDynamicRedirect => Area::Redirect,
            Self::HttpRequestCacheSettings => Area::Cache,
            Self::HttpConfigSettings => Area::Configuration,
            Self::HttpRequestOrigin => Area::Origin,
        }
    }

    /// How many rules a zone may have in it (Cloudflare documents; for deployments of managed rulesets it does not, and
    /// the number is unproven).
    pub(super) fn max_rules(self, plan: Plan) -> usize {
        let by_plan = match self {
            Self::HttpRequestFirewallCustom | Self::HttpRequestFirewallManaged => [5, 20, 100, 1000],
            Self::HttpRatelimit => [1, 2, 5, 100],
            _ => [10, 25, 50, 300],
        };
        match plan {
            Plan::Free => by_plan[0],
            Plan::Pro => by_plan[1],
            Plan::Business => by_plan[2],
            Plan::Enterprise => by_plan[3],
        }
    }
}

/// Whether Cloudflare has a phase of this name, modelled or not.
pub(super) fn is_known(name: &str) -> bool {
    NOT_MODELLED.contains(&name) || Phase::ALL.into_iter().any(|phase| phase.name() == name)
}
