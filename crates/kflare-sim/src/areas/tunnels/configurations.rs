//! `.../configurations`: one document a tunnel, replaced as a whole and checked as cloudflared checks it.

use serde_json::{Map, Value, json};

use super::{found, live, not_modelled};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::{ConfigSource, Tunnel, TunnelConfigurationDocument};

fn not_found() -> Refusal {
    Refusal::new(404, 1055, "Configuration for tunnel not found")
}

/// The text ends with a line break (seen live).
fn bad(why: &str) -> Refusal {
    Refusal::new(400, 1056, format!("Bad Configuration: Validation failed: {why}\n"))
}

/// Gone with the tunnel, which itself stays readable (seen live).
pub(super) fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let tunnel = found(call).ok().filter(|tunnel| tunnel.is_live());
    let tunnel = tunnel.ok_or_else(not_found)?;
    Ok(Reply::object(tunnel.render_configuration()))
}

pub(super) fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut body = call.json()?;
    let mut tunnel = live(call)?;
    if tunnel.config_src == ConfigSource::Local {
        return Err(not_modelled(
            "writing the configuration of a tunnel that is configured locally",
        ));
    }
    let Some(Value::Object(config)) = body.remove("config") else {
        return Err(bad("The config file doesn't contain any ingress rules"));
    };
    replace(&mut tunnel, config, call.now)?;
    let shown = tunnel.render_configuration();
    call.world.put_tunnel(tunnel, call.now);
    Ok(Reply::object(shown))
}

/// The next version of the document. What is not sent of it is gone; Cloudflare adds `warp-routing` (seen live).
pub(super) fn replace(
    tunnel: &mut Tunnel,
    mut config: Map<String, Value>,
    now: jiff::Timestamp,
) -> Result<(), Refusal> {
    check(&config)?;
    config
        .entry("warp-routing")
        .or_insert_with(|| json!({ "enabled": false }));
    tunnel.configuration = TunnelConfigurationDocument {
        version: tunnel.configuration.version + 1,
        config: Some(config),
        created_at: now,
    };
    Ok(())
}

/// Durations in seconds (cloudflared's own form in JSON).
const SECONDS: [&str; 4] = ["connectTimeout", "tlsTimeout", "tcpKeepAlive", "keepAliveTimeout"];

/// The checks of cloudflared, which Cloudflare runs too: the first two texts were seen live, the others are in its source.
fn check(config: &Map<String, Value>) -> Result<(), Refusal> {
    let rules = config.get("ingress").and_then(Value::as_array);
    let rules = rules
        .filter(|rules| !rules.is_empty())
        .ok_or_else(|| bad("The config file doesn't contain any ingress rules"))?;
    check_origin_request(config.get("originRequest"))?;
    for (index, rule) in rules.iter().enumerate() {
        let text = |key: &str| rule.get(key).and_then(Value::as_str).unwrap_or_default();
        check_service(text("service"))?;
        check_origin_request(rule.get("originRequest"))?;
        let (host, path) = (text("hostname"), text("path"));
        if host.rsplit_once(':').is_some() {
            return Err(bad("Hostname cannot contain a port"));
        }
        if host.rfind('*').is_some_and(|at| at > 0) {
            return Err(bad(
                "Hostname patterns can have at most one wildcard character (\"*\") and it can only be used for subdomains, \
                 e.g. \"*.example.com\"",
            ));
        }
        let everything = (host.is_empty() || host == "*") && path.is_empty();
        let last = index + 1 == rules.len();
        if last && !everything {
            return Err(bad(
                "The last ingress rule must match all URLs (i.e. it should not have a hostname or path filter)",
            ));
        }
        if !last && everything {
            return Err(bad(&format!(
                "Rule #{} is matching the hostname '{host}', but this will match every hostname, meaning the rules which \
                 follow it will never be triggered.",
                index + 1
            )));
        }
        if regex_lite::Regex::new(path).is_err() {
            return Err(bad(&format!("Rule #{} has an invalid regex", index + 1)));
        }
    }
    Ok(())
}

fn check_service(service: &str) -> Result<(), Refusal> {
    let named = ["hello_world", "hello-world", "bastion", "socks-proxy"];
    if named.contains(&service) || service.starts_with("unix:") || service.starts_with("unix+tls:") {
        return Ok(());
    }
    if let Some(status) = service.strip_prefix("http_status:") {
        let fits = status.parse::<u16>().is_ok_and(|status| (100..=999).contains(&status));
        return fits
            .then_some(())
            .ok_or_else(|| bad(&format!("invalid HTTP status code: {status}")));
    }
    let invalid = |why: &str| bad(&format!("{service} is an invalid address, {why}"));
    match service.split_once("://") {
        Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/') => {
            if rest.contains('/') {
                let why = "ingress rules don't support proxying to a different path on the origin service. The path will be \
                           the same as the eyeball request's path";
                return Err(invalid(why));
            }
            Ok(())
        }
        _ => Err(invalid("please make sure it has a scheme and a hostname")),
    }
}

fn check_origin_request(value: Option<&Value>) -> Result<(), Refusal> {
    let Some(request) = value.filter(|value| !value.is_null()) else {
        return Ok(());
    };
    for field in SECONDS {
        if request
            .get(field)
            .is_some_and(|value| !value.is_null() && !value.is_i64())
        {
            // The text is unproven.
            return Err(bad(&format!("{field} must be a number of seconds")));
        }
    }
    let access = request.get("access");
    let audiences = access
        .and_then(|it| it["audTag"].as_array())
        .is_some_and(|it| !it.is_empty());
    let required = access.is_some_and(|it| it["required"] == true);
    let team = access.and_then(|it| it["teamName"].as_str()).unwrap_or_default();
    if required && audiences && team.is_empty() {
        return Err(bad("access.TeamName cannot be blank when access.audTags are present"));
    }
    Ok(())
}
