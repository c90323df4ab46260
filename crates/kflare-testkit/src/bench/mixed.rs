//! A team's five zones with resources of every kind: what the figures of mixed resources are taken from. A few of most,
//! and many more records than anything else.

use kflare_api::names;
use kflare_sim::{Plan, ZoneSeed};
use serde_json::{Value, json};

use crate::simulation::ACCOUNT_ID;

/// Zones.
const ZONES: usize = 5;
/// In each zone, of each kind of rule that has no fixed number.
const RULES: usize = 4;
const ROUTES: usize = 8;
const NAMESPACES: usize = 120;
const BUCKETS: usize = 40;
const DATABASES: usize = 10;
const QUEUES: usize = 20;
const TUNNELS: usize = 20;
const SCRIPTS: usize = 25;
const LISTS: usize = 5;

/// The namespace that everything is in, and the name of the account's resource.
pub(super) struct Team<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name of the CloudflareAccount.
    pub account: &'a str,
}

/// The zones as they are in the account before kflare comes.
pub(super) fn zone_seeds() -> Vec<ZoneSeed> {
    let zone = |number| ZoneSeed {
        // What an enterprise zone may hold is agreed on by contract.
        record_quota: Some(10_000),
        ..ZoneSeed::named(&domain(number), ACCOUNT_ID).on(Plan::Enterprise)
    };
    (0..ZONES).map(zone).collect()
}

fn domain(zone: usize) -> String {
    format!("zone-{zone}.example")
}

fn zone_name(zone: usize) -> String {
    format!("zone-{zone}")
}

impl Team<'_> {
    /// The manifests of so many resources, parents first: as many records as there is room for beside all others.
    pub fn manifests(&self, count: usize) -> Vec<Value> {
        let mut all = self.of_account();
        for zone in 0..ZONES {
            all.extend(self.of_zone(zone));
        }
        let records = count.saturating_sub(all.len());
        all.extend((0..records).map(|number| self.record(number)));
        all
    }

    /// The Secret that one of the Workers reads.
    pub fn secret(&self) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "worker", "namespace": self.namespace },
            "data": { "key": "dmFsdWU=" },
        })
    }

    fn resource(&self, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": names::API_VERSION, "kind": kind,
            "metadata": { "name": name, "namespace": self.namespace },
            "spec": spec,
        })
    }

    fn adopted(&self, kind: &str, name: &str, spec: &Value) -> Value {
        let mut resource = self.resource(kind, name, spec);
        resource["metadata"]["annotations"] = json!({ names::ADOPTION_POLICY: "adopt-or-create" });
        resource
    }

    fn of_account(&self) -> Vec<Value> {
        let account = json!({ "name": self.account });
        let mut all = Vec::new();
        for number in 0..NAMESPACES {
            let spec = json!({ "accountRef": account, "title": format!("cache {number}") });
            all.push(self.resource("KVNamespace", &format!("kv-{number}"), &spec));
        }
        for number in 0..BUCKETS {
            let name = format!("bucket-{number}");
            let mut spec = json!({ "accountRef": account, "name": name });
            // What no list tells.
            if number == 0 {
                spec["cors"] = json!([{ "allowedOrigins": ["https://example.com"], "allowedMethods": ["GET"] }]);
            }
            all.push(self.resource("R2Bucket", &name, &spec));
        }
        for number in 0..DATABASES {
            let name = format!("database-{number}");
            let spec = json!({ "accountRef": account, "name": name });
            all.push(self.resource("D1Database", &name, &spec));
        }
        for number in 0..QUEUES {
            let name = format!("queue-{number}");
            let spec = json!({ "accountRef": account, "name": name });
            all.push(self.resource("Queue", &name, &spec));
        }
        for number in 0..LISTS {
            let spec = json!({
                "accountRef": account, "name": format!("list_{number}"),
                "items": [{ "ip": format!("192.0.2.{number}") }, { "ip": "2001:db8::/32" }],
            });
            all.push(self.resource("IPList", &format!("list-{number}"), &spec));
        }
        for number in 0..TUNNELS {
            let name = format!("tunnel-{number}");
            let token = json!({ "name": format!("{name}-token") });
            let spec = json!({ "accountRef": account, "name": name, "credentialsSecretRef": token });
            all.push(self.resource("Tunnel", &name, &spec));
            let spec = json!({
                "tunnelRef": { "name": name }, "defaultService": "http_status:404",
                "ingress": [{ "hostname": format!("{name}.{}", domain(0)), "service": "http://web.team.svc:80" }],
            });
            all.push(self.resource("TunnelConfiguration", &name, &spec));
        }
        for number in 0..SCRIPTS {
            let name = format!("worker-{number}");
            let mut spec = json!({
                "accountRef": account, "name": name, "compatibilityDate": "2026-01-31",
                "script": "export default { async fetch() { return new Response('hello'); } };",
                "bindings": [{ "name": "CACHE", "kvNamespaceRef": { "name": format!("kv-{number}") } }],
            });
            // What no list tells, and a value that nothing tells.
            if number == 0 {
                spec["schedules"] = json!(["0 3 * * *"]);
                spec["bindings"] = json!([{ "name": "KEY", "secretKeyRef": { "name": "worker", "key": "key" } }]);
            }
            all.push(self.resource("WorkerScript", &name, &spec));
        }
        all
    }

    fn of_zone(&self, zone: usize) -> Vec<Value> {
        let (parent, domain) = (zone_name(zone), domain(zone));
        let zone_ref = json!({ "name": parent });
        let spec = json!({ "name": domain, "accountRef": { "name": self.account }, "type": "full" });
        let mut all = vec![self.adopted("Zone", &parent, &spec)];
        let spec = json!({
            "zoneRef": zone_ref,
            "managedRequestHeaders": [{ "id": "add_visitor_location_headers", "enabled": true }],
        });
        all.push(self.adopted("ManagedTransform", &parent, &spec));
        let spec = json!({ "zoneRef": zone_ref, "ruleset": "cloudflare-managed", "enabled": true });
        all.push(self.adopted("ManagedRuleset", &parent, &spec));
        for number in 0..ROUTES {
            let spec = json!({
                "zoneRef": zone_ref, "pattern": format!("{domain}/worker/{number}/*"),
                "workerScriptRef": { "name": format!("worker-{number}") },
            });
            all.push(self.resource("WorkerRoute", &format!("{parent}-{number}"), &spec));
        }
        for number in 0..RULES {
            for (kind, rule) in rules(&domain, number) {
                let mut spec = rule;
                spec["zoneRef"] = zone_ref.clone();
                spec["expression"] = json!(format!("http.request.uri.path eq \"/{number}\""));
                all.push(self.resource(kind, &format!("{parent}-{number}"), &spec));
            }
        }
        all
    }

    fn record(&self, number: usize) -> Value {
        let zone = number % ZONES;
        let name = format!("r{number}");
        let spec = json!({
            "zoneRef": { "name": zone_name(zone) }, "name": name, "type": "A", "content": "192.0.2.1",
        });
        self.resource("DNSRecord", &name, &spec)
    }
}

/// One rule of each kind, without its place and its expression.
fn rules(domain: &str, number: usize) -> [(&'static str, Value); 7] {
    [
        ("WAFCustomRule", json!({ "priority": number, "action": "block" })),
        (
            "RateLimitRule",
            json!({
                "action": "block",
                "ratelimit": {
                    "characteristics": ["cf.colo.id", "ip.src"],
                    "period": 60, "requestsPerPeriod": 100, "mitigationTimeout": 60,
                },
            }),
        ),
        (
            "TransformRule",
            json!({ "type": "urlRewrite", "uri": { "path": { "value": format!("/moved/{number}") } } }),
        ),
        (
            "RedirectRule",
            json!({ "fromValue": { "statusCode": 301, "targetURL": { "value": format!("https://www.{domain}/") } } }),
        ),
        ("CacheRule", json!({ "cache": true })),
        ("ConfigurationRule", json!({ "settings": { "rocketLoader": false } })),
        ("OriginRule", json!({ "origin": { "port": 8443 } })),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_kind_but_the_account_is_there() {
        let team = Team {
            namespace: "team",
            account: "main",
        };
        let manifests = team.manifests(2000);
        let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
        for manifest in &manifests {
            *kinds.entry(manifest["kind"].to_string()).or_default() += 1;
        }
        assert_eq!(
            (manifests.len(), kinds.len()),
            (2000, kflare_api::crds().len() - 1),
            "{kinds:?}"
        );
    }
}
