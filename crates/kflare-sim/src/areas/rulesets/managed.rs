//! What Cloudflare provides: managed rulesets and managed lists.

use crate::plan::Plan;

/// A ruleset that Cloudflare keeps. The ids are the same in every account (Cloudflare documents them).
pub(super) struct Managed {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) phase: &'static str,
    /// The cheapest plan that may execute it; `None`: it runs by itself, rules do not execute it in a modelled phase.
    pub(super) from: Option<Plan>,
}

/// In the order in which lists show them (unproven). A new zone on the free plan was seen with the DDoS, the free managed
/// and the normalization ruleset.
pub(super) const MANAGED: [Managed; 6] = [
    Managed {
        id: "4d21379b4f9f4bb088e0729962c8b3cf",
        name: "DDoS L7 ruleset",
        description: "Automatic mitigation of HTTP-based DDoS attacks.",
        phase: "ddos_l7",
        from: None,
    },
    Managed {
        id: "77454fe2d30c4220b5701f6fdfb893ba",
        name: "Cloudflare Managed Free Ruleset",
        description: "Created by the Cloudflare security team, this ruleset provides protection for free zones",
        phase: "http_request_firewall_managed",
        from: Some(Plan::Free),
    },
    Managed {
        id: "70339d97bdb34195bbf054b1ebe81f76",
        name: "Cloudflare Normalization Ruleset",
        description: "Created by the Cloudflare security team, this ruleset provides normalization on the URL path",
        phase: "http_request_sanitize",
        from: None,
    },
    Managed {
        id: "efb7b8c949ac4650a09736fc376e9aee",
        name: "Cloudflare Managed Ruleset",
        description: "Created by the Cloudflare security team, this ruleset is designed to provide fast and effective protection for all your applications.",
        phase: "http_request_firewall_managed",
        from: Some(Plan::Pro),
    },
    Managed {
        id: "4814384a9e5d4991b9815dcfc25d2f1f",
        name: "Cloudflare OWASP Core Ruleset",
        description: "Cloudflare's implementation of the Open Web Application Security Project (OWASP) ModSecurity Core Rule Set.",
        phase: "http_request_firewall_managed",
        from: Some(Plan::Pro),
    },
    Managed {
        id: "c2e184081120413c86c3ab7e14069605",
        name: "Cloudflare Exposed Credentials Check Ruleset",
        description: "Exposed credentials check rules.",
        phase: "http_request_firewall_managed",
        from: Some(Plan::Pro),
    },
];

impl Managed {
    /// The one of this id.
    pub(super) fn find(id: &str) -> Option<&'static Self> {
        MANAGED.iter().find(|managed| managed.id == id)
    }

    /// Whether a zone on this plan has it.
    pub(super) fn is_in(&self, plan: Plan) -> bool {
        self.from.is_none_or(|from| plan >= from)
    }
}

/// Lists that Cloudflare keeps and any expression can name (Cloudflare documents; that it takes an Enterprise plan to use
/// them is not modelled).
pub(super) const MANAGED_LISTS: [&str; 5] = [
    "cf.anonymizer",
    "cf.botnetcc",
    "cf.malware",
    "cf.open_proxies",
    "cf.vpn",
];
