//! docs/kinds.md: the kinds and their fields, out of the schemas.

use std::fmt::Write;

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};

/// What the schema of a kind cannot say. One entry a kind; a kind without one fails the generation.
struct Notes {
    kind: &'static str,
    permissions: &'static str,
    deletion: &'static str,
    limits: &'static str,
}

const NOTES: &[Notes] = &[
    Notes {
        kind: "CloudflareAccount",
        permissions: "None of its own: verifying a token needs none. With Account Settings Read the account's name is shown; without it, whether the token reaches the account shows when its zones are used.",
        deletion: "Nothing at Cloudflare. It waits (`InUse`) until no resource refers to it, then takes its protection off the token Secret.",
        limits: "1,200 calls in five minutes for a user with all their tokens, or for an account-owned token; kflare keeps to the share that `--api-budget` gives it.",
    },
    Notes {
        kind: "Zone",
        permissions: "Zone Read; Zone Edit to create, change and delete. Looking up one zone by name works with a token that is limited to that zone.",
        deletion: "The zone **and every record in it**, those that kflare does not manage too; an Event says how many. It waits (`InUse`) for the DNSRecords that refer to it. Zones that kflare adopted stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "Setting `plan` buys things, so it is touched only when set. Changing `type` needs an entitlement: Cloudflare's refusal is shown as it is.",
    },
    Notes {
        kind: "DNSRecord",
        permissions: "DNS Read; DNS Edit to create, change and delete.",
        deletion: "The record. Adopted records stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "TTL is 1 (automatic) or 60 to 86,400 s, from 30 s on Enterprise zones; proxied records always have 1. Comments hold 100 characters on Free zones, 500 elsewhere; tags are not offered on Free zones.",
    },
    Notes {
        kind: "KVNamespace",
        permissions: "Workers KV Storage Read; Workers KV Storage Write to create, rename and delete.",
        deletion: "The namespace **and everything that is stored in it**; an Event says so. It waits (`InUse`) for the WorkerScripts that are bound to it. Adopted namespaces stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "Titles are unique in an account and hold up to 512 characters. A changed title renames the namespace in place, with what is stored in it.",
    },
    Notes {
        kind: "R2Bucket",
        permissions: "Workers R2 Storage Read; Workers R2 Storage Write to create, change and delete. R2 has to be switched on for the account in the dashboard first.",
        deletion: "The bucket, if it is empty. **Objects are never deleted**: a bucket that holds some stays and says `BucketNotEmpty`; empty it, or keep it with `kflare.dev/deletion-policy: retain`. It waits (`InUse`) for the WorkerScripts that are bound to it. Adopted buckets stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "Up to 1,000 lifecycle rules. The location hint is a hint: Cloudflare may choose another place. A change of the storage class is for objects to come.",
    },
    Notes {
        kind: "D1Database",
        permissions: "D1 Read; D1 Write to create, change and delete.",
        deletion: "The database **and everything that is stored in it**; an Event says so. It waits (`InUse`) for the WorkerScripts that are bound to it. Adopted databases stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "10 databases on the free Workers plan. Only `readReplication` can be changed.",
    },
    Notes {
        kind: "Queue",
        permissions: "Queues Read; Queues Write to create, change and delete. Workers Scripts Read and Write serve as well.",
        deletion: "The queue **and every message in it**; an Event says so. It waits (`InUse`) for the WorkerScripts that are bound to it, and while a bucket sends its events to it. Adopted queues stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "Messages are kept for up to 86,400 s on the free Workers plan, 1,209,600 s on the paid one. Only the settings can be changed: Cloudflare takes another name too, but what becomes of the Workers that are bound to the old one is documented nowhere. A queue cannot be made paused: it is paused right after. Consumers (a Worker that gets the messages, or clients that pull them) are not managed and not touched: they are objects of their own at Cloudflare, and a Worker that both sends to a queue and takes from it would wait for itself.",
    },
    Notes {
        kind: "WAFCustomRule",
        permissions: "Zone WAF Read; Zone WAF Write (Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay. A rule that kflare found by its mark and took over by an adoption policy stays, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "5 custom rules on Free zones, 20 on Pro, 100 on Business, 1,000 on Enterprise, those of others included. Regular expressions (`matches`) need Business, the action `log` Enterprise. Expressions hold 4,096 characters.",
    },
    Notes {
        kind: "RateLimitRule",
        permissions: "Zone WAF Read; Zone WAF Write (Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay.",
        limits: "1 rate limiting rule on Free zones, 2 on Pro, 5 on Business and Enterprise (100 with Advanced Rate Limiting), those of others included. Free zones count by IP address over 10 seconds, block for 10 seconds, and do nothing else. On all plans but Enterprise challenges need `mitigationTimeout: 0`.",
    },
    Notes {
        kind: "ManagedRuleset",
        permissions: "Zone WAF Read; Zone WAF Write (Edit in the dashboard) to create, change and delete.",
        deletion: "The rule that puts the ruleset in force. Deleting the last one of a zone **hands the zone back to Cloudflare's default, which turns the Free Managed Ruleset on**, even if it was off before; an Event says so. To turn a ruleset off, set `enabled: false` instead.",
        limits: "A zone has one deployment of a ruleset: a second one, or one that somebody else made, is a `RulesetConflict`. Free zones can only have `cloudflare-managed-free`.",
    },
    Notes {
        kind: "TransformRule",
        permissions: "Zone Transform Rules Read; Zone Transform Rules Write (Transform Rules Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay.",
        limits: "10 transform rules on Free zones, 25 on Pro, 50 on Business, 300 on Enterprise, those of others included. `regex_replace` and `matches` need Business. `type` picks the phase, which is why it cannot be changed.",
    },
    Notes {
        kind: "RedirectRule",
        permissions: "Dynamic URL Redirects Read; Dynamic URL Redirects Write (Single Redirect Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay.",
        limits: "10 single redirects on Free zones, 25 on Pro, 50 on Business, 300 on Enterprise, those of others included. `regex_replace` and `matches` need Business; `wildcard_replace` works on every plan.",
    },
    Notes {
        kind: "CacheRule",
        permissions: "Cache Settings Read; Cache Settings Write (Cache Rules Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay. What is cached already stays for its time.",
        limits: "10 cache rules on Free zones, 25 on Pro, 50 on Business, 300 on Enterprise, those of others included. Of `cacheKey.customKey` Free zones take only `queryString: {exclude: {all: true}}`; `additionalCacheablePorts` and parts of the key need Enterprise.",
    },
    Notes {
        kind: "ConfigurationRule",
        permissions: "Config Settings Read; Config Settings Write (Config Rules Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay. The zone's own settings are in force again.",
        limits: "10 configuration rules on Free zones, 25 on Pro, 50 on Business, 300 on Enterprise, those of others included. On Free zones Cloudflare refuses `polish` other than `off`, `ssl: origin_pull` and `securityLevel: off`.",
    },
    Notes {
        kind: "OriginRule",
        permissions: "Origin Read; Origin Write (Origin Rules Edit in the dashboard) to create, change and delete.",
        deletion: "The rule; rules of others and the ruleset that holds it stay.",
        limits: "10 origin rules on Free zones, 25 on Pro, 50 on Business, 300 on Enterprise, those of others included. All but `origin.port` needs Enterprise: Cloudflare's refusal is shown as it is.",
    },
    Notes {
        kind: "ManagedTransform",
        permissions: "Managed headers Read and Edit (in the dashboard: Zone, Transform Rules).",
        deletion: "Turns **all** managed transforms of the zone off, those that the spec does not list too. Adopted ones stay as they are, unless `kflare.dev/deletion-policy: delete` says otherwise. A Zone waits (`InUse`) for it.",
        limits: "One per zone: a second one, in whatever namespace, reports `AlreadyConfigured`. Free zones have six transforms; an id that the zone does not have, or two that exclude each other, is refused by Cloudflare and shown as it is. A zone that has any transform on counts as configured: an adoption policy is needed.",
    },
    Notes {
        kind: "IPList",
        permissions: "Account Filter Lists Read; Account Filter Lists Edit to create, change and delete.",
        deletion: "The list with its items, once no rule uses it (`ListInUse` until then). Adopted lists stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "Free accounts have one list, Pro and Business ten; all lists of an account hold 10,000 items together (Enterprise 500,000). An account writes the items of one list at a time: `Updating` says that it is under way. A resource of 10,000 items with long comments may be larger than the 1.5 MiB that etcd takes.",
    },
    Notes {
        kind: "WorkerScript",
        permissions: "Workers Scripts Read; Workers Scripts Write to upload, configure and delete.",
        deletion: "The Worker with all its versions, its secrets, its schedules and **every route that leads to it**. It waits (`InUse`) for the WorkerRoutes that refer to it, and while another Worker calls it. Adopted Workers stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "100 Workers and 5 schedules an account on the Free plan of Workers, 500 and 250 on the Paid plan; 64 or 128 variables of 5 KB each; 3 MB or 10 MB of compressed code. A spec holds 512 KiB of code as text; more goes into ConfigMaps. What others change shows in the time of the last change, which the list of Workers tells; schedules and workers.dev leave no such mark, so a Worker whose spec sets them is read at each drift check.",
    },
    Notes {
        kind: "WorkerRoute",
        permissions: "Workers Routes Read; Workers Routes Write to create, change and delete.",
        deletion: "The route. The Worker stays. Adopted routes stay, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "One route of a pattern in a zone: another one is `PatternConflict`. `*` stands at the start of the host and at the end of the path only.",
    },
    Notes {
        kind: "Tunnel",
        permissions: "Cloudflare Tunnel Read; Cloudflare Tunnel Edit to create and delete, and to read the connector token. The newer groups `Cloudflare One Connectors` and `Cloudflare One Connector: cloudflared` (Read, Write) serve as well.",
        deletion: "The tunnel, its token and the Secret. It waits (`InUse`) for the TunnelConfigurations and DNSRecords that refer to it. Stale connections are cleaned up first; while a connector is running Cloudflare refuses to delete its tunnel (the condition says so), so stop cloudflared. Tunnels that kflare adopted stay, unless `kflare.dev/deletion-policy: delete` says otherwise; the Secret goes in any case.",
        limits: "An account has one tunnel of a name (deleted ones do not count) and 1,000 tunnels. A token that is rotated at Cloudflare is read again when the Secret is edited or `kflare.dev/reconcile-at` is set.",
    },
    Notes {
        kind: "TunnelConfiguration",
        permissions: "Cloudflare Tunnel Read; Cloudflare Tunnel Edit to change it.",
        deletion: "The document is set back to one rule that answers 404; the tunnel stays. A configuration that kflare adopted stays as it is, unless `kflare.dev/deletion-policy: delete` says otherwise.",
        limits: "One configuration a tunnel: the oldest resource owns it, others say `TunnelAlreadyConfigured`. At most 1,000 rules.",
    },
];

/// The page.
pub fn page() -> Result<String> {
    let mut text = String::from("<!-- Generated by `make generate`; do not edit. -->\n\n# Kinds\n\n");
    text.push_str("Group `kflare.dev`, version `v1alpha1`. `!` marks required fields. What holds for every kind (references, adoption, deletion, pause, drift, conditions) is in [contract.md](contract.md).\n");
    for crd in kflare_api::crds() {
        kind(&mut text, &crd)?;
    }
    Ok(text)
}

fn kind(text: &mut String, crd: &CustomResourceDefinition) -> Result<()> {
    let names = &crd.spec.names;
    let notes = NOTES.iter().find(|notes| notes.kind == names.kind);
    let notes = notes.with_context(|| format!("{} has no notes in generate/reference.rs", names.kind))?;
    let schema = crd.spec.versions.first().and_then(|version| version.schema.as_ref());
    let schema = schema
        .and_then(|schema| schema.open_api_v3_schema.as_ref())
        .context("a CRD without a schema")?;
    let short = names.short_names.clone().unwrap_or_default().join(", ");
    writeln!(
        text,
        "\n## {} (`{short}`, {})\n",
        names.kind,
        crd.spec.scope.to_lowercase()
    )?;
    writeln!(text, "{}\n", schema.description.as_deref().unwrap_or_default())?;
    writeln!(text, "- **Permissions at Cloudflare:** {}", notes.permissions)?;
    writeln!(text, "- **Deletion:** {}", notes.deletion)?;
    writeln!(text, "- **Limits:** {}", notes.limits)?;
    writeln!(
        text,
        "- **Sample:** [config/samples/{}.yaml](../config/samples/{0}.yaml)\n",
        names.kind.to_lowercase()
    )?;
    let properties = schema.properties.as_ref();
    for part in ["spec", "status"] {
        let Some(schema) = properties.and_then(|all| all.get(part)) else {
            continue;
        };
        writeln!(text, "| {part} | type | meaning |\n| --- | --- | --- |")?;
        fields(text, "", schema)?;
        writeln!(text)?;
        for rule in rules(schema) {
            writeln!(text, "- {rule}")?;
        }
        if !rules(schema).is_empty() {
            writeln!(text)?;
        }
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    Ok(())
}

fn fields(text: &mut String, prefix: &str, schema: &JSONSchemaProps) -> Result<()> {
    let required = schema.required.clone().unwrap_or_default();
    for (name, field) in schema.properties.iter().flatten() {
        let mark = if required.contains(name) { "!" } else { "" };
        let path = format!("{prefix}{name}");
        let meaning = field
            .description
            .as_deref()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        writeln!(
            text,
            "| `{path}`{mark} | {} | {} |",
            kind_of(field),
            meaning.replace('|', "\\|")
        )?;
        // Conditions and selectors are Kubernetes' own.
        if matches!(name.as_str(), "conditions" | "allowedNamespaces") {
            continue;
        }
        fields(text, &format!("{path}."), field)?;
        if let Some(JSONSchemaPropsOrArray::Schema(item)) = &field.items {
            fields(text, &format!("{path}[]."), item)?;
        }
    }
    Ok(())
}

fn kind_of(field: &JSONSchemaProps) -> String {
    let base = field.type_.clone().unwrap_or_else(|| "any".to_owned());
    let mut words = vec![match (&*base, &field.items) {
        ("array", Some(JSONSchemaPropsOrArray::Schema(item))) => {
            format!("list of {}", item.type_.as_deref().unwrap_or("any"))
        }
        _ => base,
    }];
    let values = field
        .enum_
        .iter()
        .flatten()
        .map(|value| value.0.to_string().trim_matches('"').to_owned());
    let values: Vec<String> = values.filter(|value| value != "null").collect();
    if !values.is_empty() {
        words.push(values.join(", "));
    }
    if let Some(default) = &field.default {
        words.push(format!("default {}", default.0));
    }
    if let (Some(low), Some(high)) = (field.minimum, field.maximum) {
        words.push(format!("{low} to {high}"));
    }
    words.join("; ")
}

fn rules(schema: &JSONSchemaProps) -> Vec<String> {
    schema
        .x_kubernetes_validations
        .iter()
        .flatten()
        .filter_map(|rule| rule.message.clone())
        .collect()
}
