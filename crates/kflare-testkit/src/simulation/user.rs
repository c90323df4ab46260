//! People who change things: in the cluster, and behind kflare's back in the account.

use k8s_openapi::api::core::v1::Secret;
use kflare_api::{CloudflareAccount, DNSRecord, Zone, names};
use kflare_sim::{AccountSeed, Area, Grant, Permission, Seed, TokenSeed, ZoneSeed};
use serde_json::{Map, Value, json};

use super::{ACCOUNT_ID, World};
use crate::memory_api::ObjectId;

/// See the module.
pub struct User {
    world: World,
}

/// The namespace of resources of a simulation that name no other.
pub const NAMESPACE: &str = "team";

/// An Event, as `kubectl describe` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// `Normal` or `Warning`.
    pub severity: String,
    /// CamelCase reason.
    pub reason: String,
    /// The text.
    pub note: String,
}

impl User {
    pub(super) fn new(world: World) -> Self {
        Self { world }
    }

    /// Opens the account with a token that may do everything in it.
    ///
    /// # Panics
    /// When the simulator refuses the seed.
    #[allow(clippy::expect_used)] // the seed is fixed
    pub fn open_account(&self, zones: Vec<ZoneSeed>) {
        let seed = Seed {
            accounts: vec![AccountSeed {
                id: Some(ACCOUNT_ID.to_owned()),
                ..AccountSeed::named("Example")
            }],
            tokens: vec![TokenSeed::of_user(&token(1), everything())],
            zones,
            ..Seed::default()
        };
        self.world.cloudflare.seed(&seed).expect("the seed is valid");
    }

    /// Creates the token Secret and the account resource.
    pub fn connect(&self) {
        self.create(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "token", "namespace": "kflare-system" },
            "stringData": {}, "data": { "CF_API_TOKEN": base64(&token(1)) },
        }));
        self.create(json!({
            "apiVersion": names::API_VERSION, "kind": "CloudflareAccount",
            "metadata": { "name": "main" },
            "spec": { "accountID": ACCOUNT_ID, "tokenSecretRef": { "name": "token", "namespace": "kflare-system", "key": "CF_API_TOKEN" } },
        }));
    }

    /// Creates a zone resource.
    pub fn zone(&self, name: &str, domain: &str) {
        self.create(json!({
            "apiVersion": names::API_VERSION, "kind": "Zone",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "name": domain, "accountRef": { "name": "main" }, "type": "full" },
        }));
    }

    /// Creates a record resource; `spec` is merged over `zoneRef`.
    pub fn record(&self, name: &str, zone: &str, spec: Value) {
        let mut whole = Map::from_iter([("zoneRef".to_owned(), json!({ "name": zone }))]);
        if let Value::Object(spec) = spec {
            whole.extend(spec);
        }
        self.create(json!({
            "apiVersion": names::API_VERSION, "kind": "DNSRecord",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": whole,
        }));
    }

    /// Creates an object from a manifest. A refusal is noted in the trace.
    pub fn create(&self, object: Value) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match self.world.api.create(object) {
            Ok(_) => self.world.note(format!("user created {kind} {name}")),
            Err(status) => self
                .world
                .note(format!("user could not create {kind} {name}: {}", status.message)),
        }
    }

    /// Deletes an object, or marks it when it has finalizers.
    pub fn delete(&self, id: &ObjectId) {
        if let Err(status) = self.world.api.delete(id) {
            self.world
                .note(format!("user could not delete {id}: {}", status.message));
        }
    }

    /// Sets an annotation, or takes it off.
    pub fn annotate(&self, id: &ObjectId, annotation: &str, value: Option<&str>) {
        self.edit(id, |object| {
            let annotations = &mut object["metadata"]["annotations"];
            match value {
                Some(value) => annotations[annotation] = json!(value),
                None => {
                    if let Some(annotations) = annotations.as_object_mut() {
                        annotations.remove(annotation);
                    }
                }
            }
        });
    }

    /// Merges fields into a spec; `null` takes one out.
    pub fn edit_spec(&self, id: &ObjectId, change: &Value) {
        self.edit(id, |object| json_patch::merge(&mut object["spec"], change));
    }

    /// Changes an object through its main endpoint.
    pub fn edit(&self, id: &ObjectId, edit: impl FnOnce(&mut Value)) {
        if let Err(status) = self.world.api.edit(id, edit) {
            self.world.note(format!("user could not edit {id}: {}", status.message));
        }
    }

    /// Puts another token into the token Secret.
    pub fn rotate_token(&self, value: &str) {
        self.edit(&Self::secret_id(), |secret| {
            secret["data"]["CF_API_TOKEN"] = json!(base64(value));
        });
    }

    /// The id of the account resource.
    pub fn account_id() -> ObjectId {
        ObjectId::cluster::<CloudflareAccount>("main")
    }

    /// The id of the token Secret.
    pub fn secret_id() -> ObjectId {
        ObjectId::namespaced::<Secret>("kflare-system", "token")
    }

    /// The id of a record resource.
    pub fn record_id(name: &str) -> ObjectId {
        ObjectId::namespaced::<DNSRecord>(NAMESPACE, name)
    }

    /// The id of a zone resource.
    pub fn zone_id(name: &str) -> ObjectId {
        ObjectId::namespaced::<Zone>(NAMESPACE, name)
    }

    /// Deletes everything in one go.
    pub fn delete_all(&self) {
        self.world.note("user deletes everything");
        let _ = self.world.api.delete(&Self::secret_id());
        let _ = self.world.api.delete(&Self::account_id());
        for kind in ["zones", "dnsrecords"] {
            for object in self.world.api.list(&format!("{kind}.{}", names::GROUP)) {
                let _ = self.world.api.delete(&ObjectId::of(&object));
            }
        }
    }

    /// `Ready` of an object: its status and reason.
    pub fn ready(&self, id: &ObjectId) -> (String, String) {
        let object = self.world.api.get(id).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions
            .into_iter()
            .find(|it| it["type"] == "Ready")
            .unwrap_or_default();
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"))
    }

    /// The message of an object's `Ready` condition.
    pub fn message(&self, id: &ObjectId) -> String {
        let object = self.world.api.get(id).unwrap_or_default();
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let ready = conditions.iter().find(|it| it["type"] == "Ready");
        ready
            .and_then(|it| it["message"].as_str())
            .unwrap_or_default()
            .to_owned()
    }

    /// The Events about an object, also about earlier ones of its name, oldest first.
    pub fn events(&self, id: &ObjectId) -> Vec<Told> {
        let mut events = self.world.api.list("events.events.k8s.io");
        events.retain(|event| {
            let about = &event["regarding"];
            about["kind"] == id.kind.as_str()
                && about["name"] == id.name.as_str()
                && about["namespace"].as_str() == id.namespace.as_deref()
        });
        events.sort_by(|a, b| a["eventTime"].as_str().cmp(&b["eventTime"].as_str()));
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let told = |event: &Value| Told {
            severity: text(event, "type"),
            reason: text(event, "reason"),
            note: text(event, "note"),
        };
        events.iter().map(told).collect()
    }

    /// Whether an object is `Ready` for its spec as it stands, and the pass that made it so has written its last.
    pub fn is_ready(&self, id: &ObjectId) -> bool {
        let Some(object) = self.world.api.get(id) else {
            return false;
        };
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let announced = !object["metadata"]["annotations"][names::CREATE_INTENT].is_null();
        !announced
            && conditions.iter().any(|it| {
                it["type"] == "Ready"
                    && it["status"] == "True"
                    && it["observedGeneration"] == object["metadata"]["generation"]
            })
    }
}

/// Every permission, everywhere.
pub fn everything() -> Vec<Grant> {
    [Area::Account, Area::Zone, Area::Dns, Area::Tunnel]
        .map(|area| Grant::everywhere(Permission::write(area)))
        .to_vec()
}

/// Value of the n-th token; the first is that of the account resource.
pub fn token(number: u32) -> String {
    format!("simulated-token-number-{number}")
}

fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}
