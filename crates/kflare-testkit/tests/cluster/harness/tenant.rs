//! Somebody who uses kflare: a namespace, an account at Cloudflare with a token and, if wanted, a zone and records.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use base64::Engine as _;
use k8s_openapi::api::core::v1::Secret;
use kflare_api::{
    CacheRule, CloudflareAccount, ConfigurationRule, D1Database, DNSRecord, IPList, KVNamespace, ManagedRuleset,
    ManagedTransform, OriginRule, Queue, R2Bucket, RateLimitRule, RedirectRule, TransformRule, Tunnel,
    TunnelConfiguration, WAFCustomRule, WorkerRoute, WorkerScript, Zone, names,
};
use kflare_sim::{AccountSeed, Area, Grant, Permission, Seed, UserSeed};
use kflare_testkit::cluster::{TestNamespace, diagnose};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::site::Site;

/// One line a kind: what tests call it, and its type.
macro_rules! kinds {
    ($($name:ident = $kind:ty,)*) => {
        /// The kinds under test.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Kind {
            $($name,)*
        }

        impl Kind {
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$name),*];

            pub fn resource(self) -> ApiResource {
                match self {
                    $(Self::$name => ApiResource::erase::<$kind>(&()),)*
                }
            }
        }
    };
}

kinds! {
    Account = CloudflareAccount,
    Zone = Zone,
    Record = DNSRecord,
    WafCustomRule = WAFCustomRule,
    RateLimitRule = RateLimitRule,
    ManagedRuleset = ManagedRuleset,
    TransformRule = TransformRule,
    RedirectRule = RedirectRule,
    CacheRule = CacheRule,
    ConfigurationRule = ConfigurationRule,
    OriginRule = OriginRule,
    Tunnel = Tunnel,
    TunnelConfiguration = TunnelConfiguration,
    ManagedTransform = ManagedTransform,
    IPList = IPList,
    KvNamespace = KVNamespace,
    R2Bucket = R2Bucket,
    D1Database = D1Database,
    Queue = Queue,
    WorkerScript = WorkerScript,
    WorkerRoute = WorkerRoute,
}

impl Kind {
    /// The kind of this name.
    pub fn named(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|it| it.resource().kind == name);
        found.unwrap_or_else(|| panic!("{name} has no line in harness/tenant.rs"))
    }
}

/// The `Ready` condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub status: String,
    pub reason: String,
    pub message: String,
    pub observed_generation: i64,
    pub since: String,
}

impl Ready {
    /// Of an object, if it has one.
    pub fn of(object: &DynamicObject) -> Option<Self> {
        let conditions = object.data.pointer("/status/conditions")?.as_array()?;
        let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
        let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
        Some(Self {
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            observed_generation: ready["observedGeneration"].as_i64()?,
            since: text("lastTransitionTime"),
        })
    }

    /// Of an object, if it speaks of the spec as it stands.
    pub fn current(object: &DynamicObject) -> Option<Self> {
        Self::of(object).filter(|it| Some(it.observed_generation) == object.metadata.generation)
    }
}

/// A token at Cloudflare.
#[derive(Clone, Debug)]
pub struct Token {
    pub id: String,
    pub value: String,
}

/// See the module.
pub struct Tenant<'a> {
    pub site: &'a Site,
    pub namespace: TestNamespace,
    /// Name of the CloudflareAccount.
    pub account: String,
    /// Id of the account at Cloudflare.
    pub account_id: String,
    /// The token in the Secret `token`.
    pub token: Token,
    /// A domain nobody else uses.
    pub domain: String,
    /// All tokens ever used, by id.
    pub(super) tokens: Mutex<BTreeMap<String, String>>,
    /// Specs as the API server stored them for the user, by UID.
    specs: Mutex<BTreeMap<String, Value>>,
    pub(super) reported: AtomicBool,
}

/// Name of the token Secret of every tenant.
pub const SECRET: &str = "token";
/// Name of the Zone of every tenant who has one.
pub const ZONE: &str = "zone";
/// Field manager of the user.
const USER: &str = "user";

impl<'a> Tenant<'a> {
    /// A tenant with an empty namespace, and an account at Cloudflare that is theirs alone.
    pub async fn move_in(site: &'a Site, client: &Client, prefix: &str) -> Self {
        let namespace = TestNamespace::create(client, prefix).await.unwrap();
        let name = namespace.name().to_owned();
        // A user of their own: Cloudflare limits calls by user.
        let user = UserSeed {
            email: format!("{name}@example.com"),
            accounts: Some(vec![name.clone()]),
            ..UserSeed::default()
        };
        let seed = Seed {
            accounts: vec![AccountSeed::named(&name)],
            users: vec![user],
            ..Seed::default()
        };
        let account_id = site.cloudflare.seed(&seed).unwrap().accounts[0].clone();
        let mut tenant = Self {
            site,
            account: name.clone(),
            account_id,
            token: Token {
                id: String::new(),
                value: String::new(),
            },
            domain: format!("{name}.example"),
            namespace,
            tokens: Mutex::default(),
            specs: Mutex::default(),
            reported: AtomicBool::new(false),
        };
        tenant.token = tenant.issue_token("first", everything());
        tenant
    }

    /// The same tenant in another namespace.
    pub async fn elsewhere(&self, prefix: &str) -> Self {
        Self {
            site: self.site,
            namespace: TestNamespace::create(self.client(), prefix).await.unwrap(),
            account: self.account.clone(),
            account_id: self.account_id.clone(),
            token: self.token.clone(),
            domain: self.domain.clone(),
            tokens: Mutex::new(self.tokens.lock().unwrap().clone()),
            specs: Mutex::default(),
            reported: AtomicBool::new(false),
        }
    }

    pub fn client(&self) -> &Client {
        self.namespace.client()
    }

    /// Name of the namespace.
    pub fn home(&self) -> &str {
        self.namespace.name()
    }

    pub fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let (client, resource) = (self.client().clone(), kind.resource());
        match kind {
            Kind::Account => Api::all_with(client, &resource),
            _ => Api::namespaced_with(client, self.home(), &resource),
        }
    }

    pub fn secrets(&self) -> Api<Secret> {
        self.namespace.api()
    }

    /// Creates the token Secret and the account. Does not wait.
    pub async fn connect(&self) {
        self.create_secret().await;
        self.create_account().await;
    }

    /// [`Tenant::connect`] and a Zone, which is made at Cloudflare. Waits until it is Ready.
    pub async fn open(&self) {
        self.connect().await;
        self.create_zone(&[]).await;
        self.until_ready(Kind::Zone, ZONE).await;
    }

    pub async fn create_secret(&self) {
        let data = json!({ names::DEFAULT_TOKEN_KEY: encode(&self.token.value) });
        let secret = json!({ "metadata": { "name": SECRET }, "data": data });
        let secret = serde_json::from_value(secret).unwrap();
        self.secrets().create(&by_user(), &secret).await.unwrap();
    }

    /// Creates a Secret with one key, for a resource that reads it.
    pub async fn create_input(&self, name: &str, key: &str) {
        let secret = json!({ "metadata": { "name": name }, "data": { key: encode("what is bound") } });
        let secret = serde_json::from_value(secret).unwrap();
        self.secrets().create(&by_user(), &secret).await.unwrap();
    }

    pub fn account_spec(&self) -> Value {
        let secret = json!({ "name": SECRET, "namespace": self.home() });
        json!({ "accountID": self.account_id, "tokenSecretRef": secret })
    }

    pub async fn create_account(&self) -> DynamicObject {
        let spec = self.account_spec();
        self.create(Kind::Account, &self.account, &[], spec).await
    }

    pub async fn create_zone(&self, annotations: &[(&str, &str)]) -> DynamicObject {
        let spec = json!({ "name": self.domain, "accountRef": { "name": self.account } });
        self.create(Kind::Zone, ZONE, annotations, spec).await
    }

    /// Creates an A record of the zone, whose name is the name of the resource.
    pub async fn create_a(&self, name: &str, annotations: &[(&str, &str)]) -> DynamicObject {
        let spec = json!({ "zoneRef": { "name": ZONE }, "name": name, "type": "A", "content": "192.0.2.1" });
        self.create(Kind::Record, name, annotations, spec).await
    }

    pub async fn create(&self, kind: Kind, name: &str, annotations: &[(&str, &str)], spec: Value) -> DynamicObject {
        let mut object = DynamicObject::new(name, &kind.resource()).data(json!({ "spec": spec }));
        let annotations = annotations.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        object.annotations_mut().extend(annotations);
        let created = self.api(kind).create(&by_user(), &object).await.unwrap();
        self.remember(&created);
        created
    }

    /// Changes an object as a user does.
    pub async fn change(&self, kind: Kind, name: &str, patch: Value) -> DynamicObject {
        let params = PatchParams {
            field_manager: Some(USER.to_owned()),
            ..PatchParams::default()
        };
        let changed = self
            .api(kind)
            .patch(name, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
        self.remember(&changed);
        changed
    }

    /// Sets an annotation, or with `None` takes it away.
    pub async fn annotate(&self, kind: Kind, name: &str, annotation: &str, value: Option<&str>) -> DynamicObject {
        let patch = json!({ "metadata": { "annotations": { annotation: value } } });
        self.change(kind, name, patch).await
    }

    /// Puts another value under a key of the token Secret.
    pub async fn set_secret(&self, key: &str, value: &str) {
        let patch = json!({ "data": { key: encode(value) } });
        self.secrets()
            .patch(SECRET, &PatchParams::default(), &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    /// Asks for deletion.
    pub async fn delete(&self, kind: Kind, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn delete_secret(&self) {
        self.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
    }

    pub async fn get(&self, kind: Kind, name: &str) -> DynamicObject {
        self.api(kind).get(name).await.unwrap()
    }

    /// The spec of this object is as the user wants it.
    pub fn remember(&self, object: &DynamicObject) {
        let spec = object.data["spec"].clone();
        self.specs.lock().unwrap().insert(object.uid().unwrap(), spec);
    }

    /// The spec that the user gave an object.
    pub fn spec_of(&self, object: &DynamicObject) -> Option<Value> {
        self.specs.lock().unwrap().get(&object.uid().unwrap()).cloned()
    }

    /// Events, objects and calls, unless they have been reported already.
    pub async fn report(&self) -> String {
        if self.reported.swap(true, Ordering::Relaxed) {
            return String::new();
        }
        let cluster = diagnose(self.client(), self.home()).await;
        format!("{cluster}{}", self.told_calls())
    }

    pub(super) fn told_calls(&self) -> String {
        let mut told = "calls made to Cloudflare:\n".to_owned();
        for call in self.calls(0) {
            let _ = writeln!(
                told,
                "  #{} {} {} {} -> {:?} {:?}",
                call.sequence,
                call.method,
                call.path,
                call.body.map(|body| body.to_string()).unwrap_or_default(),
                call.status,
                call.error_code
            );
        }
        told
    }
}

/// Every permission that the kinds need, everywhere.
pub fn everything() -> Vec<Grant> {
    Area::ALL
        .map(|area| Grant::everywhere(Permission::write(area)))
        .to_vec()
}

/// The id in `status.cloudflareMetadata`.
pub fn id_of(object: &DynamicObject) -> String {
    let metadata = &object.data["status"]["cloudflareMetadata"];
    let ids = ["recordID", "zoneID", "ruleID", "tunnelID"];
    let id = ids.iter().find_map(|field| metadata[*field].as_str());
    id.unwrap_or_default().to_owned()
}

fn by_user() -> PostParams {
    PostParams {
        field_manager: Some(USER.to_owned()),
        ..PostParams::default()
    }
}

fn encode(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}
