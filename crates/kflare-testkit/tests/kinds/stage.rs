//! What every test here stands on: a world, its user, a controller, and ways to wait and to count.

use std::time::Duration;

use kflare_api::names;
use kflare_sim::{CallRecord, Fault, FaultMatch, FaultSpec, Plan, Simulator};
use kflare_testkit::{
    life::Life,
    memory_api::{ObjectId, RequestRecord},
    simulation::{ControllerOptions, NAMESPACE, User, World, simulate},
};
use serde_json::{Map, Value, json};

pub const MINUTE: Duration = Duration::from_mins(1);
pub const HOUR: Duration = Duration::from_hours(1);

/// The zone of most tests, and the name of its resource.
pub const DOMAIN: &str = "example.com";
pub const ZONE: &str = "example";

pub const RECORDS: &str = "/zones/{zone_id}/dns_records";
pub const RECORD: &str = "/zones/{zone_id}/dns_records/{dns_record_id}";
pub const BATCH: &str = "/zones/{zone_id}/dns_records/batch";

/// How long a resource may take to become what it is to be.
const PATIENCE: Duration = Duration::from_mins(15);

pub struct Stage {
    pub world: World,
    pub user: User,
    pub cloudflare: Simulator,
}

/// A moment from which to count.
pub struct Mark {
    call: u64,
    request: u64,
}

/// What happened since a [`Mark`].
pub struct Since {
    /// All calls to Cloudflare.
    pub calls: Vec<CallRecord>,
    /// Writes to Kubernetes, Events and leases left out.
    pub kubernetes_writes: Vec<RequestRecord>,
}

impl Since {
    pub fn cloudflare_writes(&self) -> Vec<&CallRecord> {
        self.calls.iter().filter(|call| call.method != "GET").collect()
    }

    #[track_caller]
    pub fn assert_no_write(&self) {
        self.assert_no_cloudflare_write();
        assert!(self.kubernetes_writes.is_empty(), "{:#?}", self.kubernetes_writes);
    }

    #[track_caller]
    pub fn assert_no_cloudflare_write(&self) {
        let writes = self.cloudflare_writes();
        assert!(writes.is_empty(), "{writes:#?}");
    }
}

/// Runs a scenario in an empty world.
pub fn play<F: Future<Output = ()>>(seed: u64, scenario: impl FnOnce(Stage) -> F) {
    simulate(seed, |world| {
        scenario(Stage {
            user: world.user(),
            cloudflare: world.cloudflare.clone(),
            world,
        })
    });
}

/// Runs a scenario with an account, a zone that kflare made, and a controller, all at rest.
pub fn play_in_zone<F: Future<Output = ()>>(plan: Plan, scenario: impl FnOnce(Stage) -> F) {
    play(11, |stage| async move {
        stage.user.open_account(vec![]);
        stage.user.connect();
        stage.user.zone(ZONE, DOMAIN);
        stage.start();
        stage.ready(&[zone_id()]).await;
        stage.cloudflare.set_zone_plan(DOMAIN, plan).unwrap();
        stage.reconcile(&[zone_id()], "with its plan").await;
        stage.rest(MINUTE).await;
        scenario(stage).await;
    });
}

impl Stage {
    /// Starts a controller with the usual options.
    pub fn start(&self) -> Life {
        self.start_with("controller", ControllerOptions::default())
    }

    pub fn start_with(&self, name: &str, options: ControllerOptions) -> Life {
        let life = Life::new(name);
        let (world, running) = (self.world.clone(), life.clone());
        tokio::spawn(async move { world.run_controller(&running, options).await });
        life
    }

    /// Waits until all are Ready at their generation.
    #[track_caller]
    pub fn ready(&self, ids: &[ObjectId]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let all = |_: &World| ids.iter().all(|id| self.user.is_ready(id));
            if !self.world.until(PATIENCE, all).await {
                let not: Vec<_> = ids.iter().filter(|id| !self.user.is_ready(id)).collect();
                panic!("{place}: {} not ready; {}", not.len(), self.explain(not[0]));
            }
        }
    }

    /// Waits until the condition of a resource is this one, for its spec as it stands.
    #[track_caller]
    pub fn says(&self, id: &ObjectId, status: &str, reason: &str) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let wanted = (status.to_owned(), reason.to_owned());
            let holds = |world: &World| {
                let object = world.api.get(id).unwrap_or_default();
                self.user.ready(id) == wanted && observed(&object) == object["metadata"]["generation"].as_i64()
            };
            assert!(
                self.world.until(PATIENCE, holds).await,
                "{place}: not {wanted:?}; {}",
                self.explain(id)
            );
        }
    }

    /// Waits until the objects are gone.
    #[track_caller]
    pub fn gone(&self, ids: &[ObjectId]) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let gone = |world: &World| ids.iter().all(|id| world.api.get(id).is_none());
            if !self.world.until(PATIENCE, gone).await {
                let left: Vec<_> = ids.iter().filter(|id| self.world.api.get(id).is_some()).collect();
                panic!("{place}: not gone; {}", self.explain(left[0]));
            }
        }
    }

    /// Waits until something holds.
    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let held = self.world.until(PATIENCE, |_| holds(self)).await;
            assert!(held, "{place}: {what}\n{}", self.last_lines());
        }
    }

    /// As [`Self::until`], with a limit of its own.
    #[track_caller]
    pub fn until_within(&self, what: &str, limit: Duration, holds: impl Fn(&Self) -> bool) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let held = self.world.until(limit, |_| holds(self)).await;
            assert!(held, "{place}: {what}\n{}", self.last_lines());
        }
    }

    /// Virtual time since the beginning, in seconds.
    pub fn seconds(&self) -> u64 {
        self.world.api.clock().elapsed().as_secs()
    }

    /// Lets time pass.
    pub async fn rest(&self, time: Duration) {
        self.world.pass_time(time).await;
    }

    pub fn mark(&self) -> Mark {
        Mark {
            call: self.cloudflare.calls().last().map_or(0, |call| call.sequence),
            request: self.world.api.request_count(),
        }
    }

    pub fn since(&self, mark: &Mark) -> Since {
        let mut kubernetes_writes = self.world.api.requests();
        kubernetes_writes.retain(|it| {
            it.number > mark.request
                && it.request.writes()
                && it.request.resource != "events.events.k8s.io"
                && it.request.resource != "leases.coordination.k8s.io"
        });
        Since {
            calls: self.cloudflare.calls_since(mark.call),
            kubernetes_writes,
        }
    }

    /// Creates a record resource in the zone of the tests.
    pub fn record(&self, name: &str, spec: Value) -> ObjectId {
        self.create(record(name, spec))
    }

    pub fn create(&self, manifest: Value) -> ObjectId {
        let id = ObjectId::of(&manifest);
        self.user.create(manifest);
        assert!(self.world.api.get(&id).is_some(), "{id} was refused");
        id
    }

    /// A record that somebody else makes; its id.
    pub fn foreign(&self, body: &Value) -> String {
        let made = self.cloudflare.foreign_create(DOMAIN, object(body)).unwrap();
        made["id"].as_str().unwrap().to_owned()
    }

    /// Somebody else's change of a record.
    pub fn foreign_patch(&self, id: &str, body: &Value) {
        self.cloudflare.foreign_patch(DOMAIN, id, object(body)).unwrap();
    }

    /// All records of the zone.
    pub fn records(&self) -> Vec<Value> {
        self.cloudflare.records(DOMAIN).unwrap()
    }

    /// A record at Cloudflare by its id.
    #[track_caller]
    pub fn remote(&self, id: &str) -> Value {
        let found = self.records().into_iter().find(|it| it["id"] == id);
        found.unwrap_or_else(|| panic!("no record {id}"))
    }

    /// The id that a resource has recorded.
    pub fn recorded(&self, id: &ObjectId) -> Option<String> {
        let metadata = self.status(id)["cloudflareMetadata"].clone();
        let field = match id.kind.as_str() {
            "Zone" => "zoneID",
            "WorkerScript" => "scriptID",
            "WorkerRoute" => "routeID",
            "Tunnel" | "TunnelConfiguration" => "tunnelID",
            _ => "recordID",
        };
        metadata[field].as_str().map(str::to_owned)
    }

    pub fn status(&self, id: &ObjectId) -> Value {
        self.world.api.get(id).unwrap_or_default()["status"].take()
    }

    pub fn metadata(&self, id: &ObjectId) -> Value {
        self.world.api.get(id).unwrap_or_default()["metadata"].take()
    }

    /// Whether an Event of that reason was told, with every one of these words in its text.
    pub fn told(&self, id: &ObjectId, reason: &str, words: &[&str]) -> bool {
        let events = self.user.events(id);
        events
            .iter()
            .any(|it| it.reason == reason && words.iter().all(|word| it.note.contains(word)))
    }

    /// How many Events of that reason were told.
    pub fn times_told(&self, id: &ObjectId, reason: &str) -> usize {
        self.user.events(id).iter().filter(|it| it.reason == reason).count()
    }

    /// Asks for a reconcile now and waits until it was served.
    pub async fn reconcile(&self, ids: &[ObjectId], at: &str) {
        for id in ids {
            self.user.annotate(id, names::RECONCILE_AT, Some(at));
        }
        let served = |stage: &Self| ids.iter().all(|id| stage.status(id)["lastReconcileAt"] == at);
        self.until("reconcile-at is served", served).await;
    }

    /// Asks for a reconcile now.
    pub fn reconcile_no_wait(&self, id: &ObjectId, at: &str) {
        self.user.annotate(id, names::RECONCILE_AT, Some(at));
    }

    pub fn fault(&self, matches: FaultMatch, fault: Fault) -> u64 {
        self.cloudflare.add_fault(FaultSpec::new(matches, fault)).unwrap()
    }

    pub fn fault_times(&self, matches: FaultMatch, fault: Fault, times: u64) -> u64 {
        self.cloudflare
            .add_fault(FaultSpec::new(matches, fault).times(times))
            .unwrap()
    }

    /// All there is to say about a resource that did not do as it should.
    pub fn explain(&self, id: &ObjectId) -> String {
        let object = self.world.api.get(id).unwrap_or_default();
        let object = serde_json::to_string_pretty(&object).unwrap();
        format!("{id}: {object}\n{:#?}\n{}", self.user.events(id), self.last_lines())
    }

    fn last_lines(&self) -> String {
        let lines = self.world.api.trace().lines();
        let cut = |line: &String| line.chars().take(400).collect::<String>();
        let from = lines.len().saturating_sub(30);
        lines[from..].iter().map(cut).collect::<Vec<_>>().join("\n")
    }
}

fn observed(object: &Value) -> Option<i64> {
    let conditions = object["status"]["conditions"].as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
    ready["observedGeneration"].as_i64()
}

pub fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

pub fn zone_id() -> ObjectId {
    User::zone_id(ZONE)
}

/// A record manifest in the zone of the tests.
pub fn record(name: &str, spec: Value) -> Value {
    let mut whole = json!({ "zoneRef": { "name": ZONE } });
    json_patch_merge(&mut whole, spec);
    json!({
        "apiVersion": names::API_VERSION, "kind": "DNSRecord",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

/// A zone manifest.
pub fn zone(name: &str, spec: Value) -> Value {
    let mut whole = json!({ "accountRef": { "name": "main" }, "type": "full" });
    json_patch_merge(&mut whole, spec);
    json!({
        "apiVersion": names::API_VERSION, "kind": "Zone",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": whole,
    })
}

fn json_patch_merge(whole: &mut Value, fields: Value) {
    if let (Value::Object(whole), Value::Object(fields)) = (whole, fields) {
        whole.extend(fields);
    }
}

/// A manifest with an annotation.
pub fn annotated(mut manifest: Value, annotation: &str, value: &str) -> Value {
    manifest["metadata"]["annotations"][annotation] = json!(value);
    manifest
}

/// A manifest with an adoption policy.
pub fn adopting(manifest: Value, policy: &str) -> Value {
    annotated(manifest, names::ADOPTION_POLICY, policy)
}

/// A manifest in another namespace.
pub fn in_namespace(mut manifest: Value, namespace: &str) -> Value {
    manifest["metadata"]["namespace"] = json!(namespace);
    manifest
}

/// An error answer.
pub fn status(status: u16, code: i64) -> Fault {
    Fault::Status {
        status,
        code,
        message: format!("simulated failure {code}"),
    }
}
