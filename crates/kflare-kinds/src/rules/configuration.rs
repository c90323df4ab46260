//! `ConfigurationRule`.

use kflare_api::rules::{RuleBase, configuration::ConfigurationRuleSpec};
use serde_json::json;

use super::{Action, RuleKind};

/// The kind.
pub struct Configuration;

impl RuleKind for Configuration {
    type Spec = ConfigurationRuleSpec;
    const KIND: &'static str = "ConfigurationRule";
    const PLURAL: &'static str = "configurationrules";

    fn base(spec: &Self::Spec) -> &RuleBase {
        &spec.base
    }

    fn expression(spec: &Self::Spec) -> &str {
        &spec.expression
    }

    fn phase(_spec: &Self::Spec) -> &'static str {
        "http_config_settings"
    }

    fn action(spec: &Self::Spec) -> Action {
        let settings = &spec.settings;
        let parameters = json!({
            "ssl": settings.ssl,
            "security_level": settings.security_level,
            "rocket_loader": settings.rocket_loader,
            "polish": settings.polish,
            "bic": settings.browser_integrity_check,
            "automatic_https_rewrites": settings.automatic_https_rewrites,
            "email_obfuscation": settings.email_obfuscation,
            "fonts": settings.fonts,
            "hotlink_protection": settings.hotlink_protection,
            "opportunistic_encryption": settings.opportunistic_encryption,
            "disable_rum": settings.disable_rum,
            "disable_zaraz": settings.disable_zaraz,
            "request_body_buffering": settings.request_body_buffering,
            "response_body_buffering": settings.response_body_buffering,
        });
        Action::new("set_config", parameters)
    }
}
