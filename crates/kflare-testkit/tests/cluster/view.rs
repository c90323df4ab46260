//! What `kubectl get` shows: printed columns, short names, the category. And what Prometheus scrapes.

use kube::api::ListParams;
use prometheus::TextEncoder;
use serde_json::Value;

use crate::harness::tenant::{ZONE, id_of};
use crate::harness::{Kind, Tenant, scenario, site};

/// The table of one object, as the API server makes it for kubectl: columns with their priority, and cells.
async fn table(tenant: &Tenant<'_>, kind: Kind, name: &str) -> (Vec<(String, i64)>, Vec<String>) {
    let resource = kind.resource();
    let namespace = match kind {
        Kind::Account => String::new(),
        _ => format!("namespaces/{}/", tenant.home()),
    };
    let path = format!("/apis/{}/{namespace}{}/{name}", resource.api_version, resource.plural);
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
    let table: Value = tenant.client().request(request).await.unwrap();
    assert_eq!(table["kind"], "Table");
    let columns = table["columnDefinitions"].as_array().unwrap().iter();
    let columns = columns.map(|column| {
        let name = column["name"].as_str().unwrap().to_owned();
        (name, column["priority"].as_i64().unwrap())
    });
    let cells = table["rows"][0]["cells"].as_array().unwrap().iter();
    let cells = cells.map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned));
    (columns.collect(), cells.collect())
}

fn columns(wanted: &[(&str, i64)]) -> Vec<(String, i64)> {
    wanted
        .iter()
        .map(|(name, priority)| ((*name).to_owned(), *priority))
        .collect()
}

#[tokio::test]
async fn printed_columns_show_identity_remote_id_ready_reason_and_age() {
    scenario("columns", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        let record = tenant.until_ready(Kind::Record, "www").await;
        let zone = tenant.get(Kind::Zone, ZONE).await;

        let (shown, cells) = table(tenant, Kind::Account, &tenant.account).await;
        let wanted = [
            ("Name", 0),
            ("Account ID", 0),
            ("Account Name", 0),
            ("Ready", 0),
            ("Reason", 1),
            ("Age", 0),
        ];
        assert_eq!(shown, columns(&wanted));
        assert_eq!(
            cells[..5],
            [
                &*tenant.account,
                &*tenant.account_id,
                &*tenant.account,
                "True",
                "Validated"
            ]
        );

        let (shown, cells) = table(tenant, Kind::Zone, ZONE).await;
        let wanted = [
            ("Name", 0),
            ("Zone", 0),
            ("Plan", 0),
            ("Status", 0),
            ("Zone ID", 0),
            ("Ready", 0),
            ("Reason", 1),
            ("Age", 0),
        ];
        assert_eq!(shown, columns(&wanted));
        assert_eq!(
            cells[..7],
            [
                ZONE,
                &*tenant.domain,
                "free",
                "pending",
                &*id_of(&zone),
                "True",
                "Synced"
            ]
        );

        let (shown, cells) = table(tenant, Kind::Record, "www").await;
        let wanted = [
            ("Name", 0),
            ("DNS Name", 0),
            ("Type", 0),
            ("Content", 1),
            ("Record ID", 0),
            ("Ready", 0),
            ("Reason", 1),
            ("Age", 0),
        ];
        assert_eq!(shown, columns(&wanted));
        assert_eq!(
            cells[..7],
            ["www", "www", "A", "192.0.2.1", &*id_of(&record), "True", "Synced"]
        );
    })
    .await;
}

#[tokio::test]
async fn kubectl_knows_the_category_and_the_short_names() {
    scenario("kubectl", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let kubectl = &tenant.site.kubectl;

        let all = kubectl.run(&["get", "kflare", "-A"]).await.unwrap();
        let lines: Vec<Vec<&str>> = all.lines().map(|line| line.split_whitespace().collect()).collect();
        let shows = |start: &[&str]| lines.iter().any(|line| line.starts_with(start));
        let account = format!("cloudflareaccount.kflare.dev/{}", tenant.account);
        assert!(shows(&[&account]), "{account} is not in\n{all}");
        assert!(shows(&[tenant.home(), "zone.kflare.dev/zone"]), "{all}");
        assert!(shows(&[tenant.home(), "dnsrecord.kflare.dev/www"]), "{all}");

        for (short, name) in [("cfaccount", &*tenant.account), ("cfzone", ZONE), ("cfrecord", "www")] {
            let ready = "jsonpath={.status.conditions[?(@.type=='Ready')].status}";
            let get = ["get", short, name, "-n", tenant.home(), "-o", ready];
            assert_eq!(kubectl.run(&get).await.unwrap(), "True", "{short}");
        }
        let explained = kubectl.run(&["explain", "dnsrecord.spec.ttl"]).await.unwrap();
        assert!(explained.contains("Time to live in seconds"), "{explained}");
        let waited = [
            "wait",
            "cfrecord/www",
            "-n",
            tenant.home(),
            "--for=condition=Ready",
            "--timeout=30s",
        ];
        kubectl.run(&waited).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn metrics_count_passes_queues_and_resources_under_their_well_known_names() {
    scenario("metrics", async |tenant| {
        tenant.open().await;
        tenant.create_a("www", &[]).await;
        tenant.until_ready(Kind::Record, "www").await;
        let registry = &site::shared_replica().await.registry;
        let value = |text: &str, series: &str| -> Option<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(series));
            line.map(|value| value.trim().parse().unwrap())
        };
        let wanted = [
            r#"controller_runtime_reconcile_total{controller="dnsrecord",result="success"}"#,
            r#"controller_runtime_reconcile_total{controller="zone",result="success"}"#,
            r#"controller_runtime_reconcile_total{controller="cloudflareaccount",result="success"}"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="dnsrecord"}"#,
            r#"kflare_resources{kind="DNSRecord",ready="True",reason="Synced"}"#,
            r#"kflare_resources{kind="Zone",ready="True",reason="Synced"}"#,
            r#"kflare_resources{kind="CloudflareAccount",ready="True",reason="Validated"}"#,
            r#"kflare_batch_size_count{kind="DNSRecord"}"#,
            "kflare_leader",
        ];
        // Gauges are brought up to date every fifteen seconds.
        let probe = async || {
            let text = TextEncoder::new().encode_to_string(&registry.gather())?;
            let missing = wanted
                .iter()
                .find(|series| value(&text, series).unwrap_or_default() < 1.0);
            let has_depth = text.contains(r#"workqueue_depth{controller="dnsrecord"}"#);
            let has_age = text.contains(r#"kflare_watch_event_age_seconds{resource="DNSRecord"}"#);
            Ok::<_, prometheus::Error>((missing.is_none() && has_depth && has_age).then_some(text))
        };
        let text = tenant.until("the metrics", probe).await;
        let panics = value(
            &text,
            r#"controller_runtime_reconcile_panics_total{controller="dnsrecord"}"#,
        );
        assert_eq!(panics.unwrap_or_default().to_string(), "0");
        // The events recorder does not fall behind.
        assert_eq!(
            value(&text, "kflare_events_dropped_total")
                .unwrap_or_default()
                .to_string(),
            "0"
        );
        assert!(
            tenant
                .api(Kind::Record)
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .len()
                == 1,
            "one record, however often it was looked at"
        );
    })
    .await;
}
