//! Somebody who uses kflare: a namespace, an account at Cloudflare with a token and a zone in which others work too.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Secret;
use kflare_api::{CloudflareAccount, DNSRecord, Zone, names};
use kflare_sim::{AccountSeed, Area, Effect, Grant, Permission, Seed, Simulator, TokenSeed, UserSeed, ZoneSeed};
use kflare_testkit::cluster::{TestNamespace, WaitError, diagnose};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::life::Life;
use super::site::Site;

/// The kinds under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Account,
    Zone,
    Record,
}

/// See the module.
pub struct Tenant<'a> {
    /// Where they live.
    pub site: &'a Site,
    namespace: TestNamespace,
    account_id: String,
    token_id: String,
    token: String,
}

const SECRET: &str = "token";

impl<'a> Tenant<'a> {
    /// A tenant with an empty namespace. At Cloudflare there is an account with the zone `home`, and nothing of kflare's.
    pub async fn move_in(site: &'a Site, prefix: &str) -> Self {
        let namespace = TestNamespace::create(&site.admin, prefix).await.unwrap();
        let name = namespace.name().to_owned();
        // A user of their own: Cloudflare limits calls by user.
        let user = UserSeed {
            email: format!("{name}@example.com"),
            accounts: Some(vec![name.clone()]),
            ..UserSeed::default()
        };
        let token = format!("token-{name}");
        let everything = [Area::Account, Area::Zone, Area::Dns].map(|it| Grant::everywhere(Permission::write(it)));
        let seed = Seed {
            accounts: vec![AccountSeed::named(&name)],
            tokens: vec![TokenSeed {
                user: Some(user.email.clone()),
                ..TokenSeed::of_user(&token, everything.to_vec())
            }],
            users: vec![user],
            zones: vec![ZoneSeed::named(&domain("home", &name), &name)],
            ..Seed::default()
        };
        let seeded = site.cloudflare.seed(&seed).unwrap();
        Self {
            site,
            namespace,
            account_id: seeded.accounts[0].clone(),
            token_id: seeded.tokens[0].clone(),
            token,
        }
    }

    /// Name of the namespace, of the account and of everything else that is theirs.
    pub fn home(&self) -> &str {
        self.namespace.name()
    }

    /// Asks until there is an answer, at most a minute.
    pub async fn until<T, E: fmt::Display>(
        &self,
        what: &str,
        probe: impl AsyncFnMut() -> Result<Option<T>, E>,
    ) -> Result<T, WaitError> {
        self.namespace.wait_for(what, probe).await
    }

    fn api(&self, kind: Kind) -> Api<DynamicObject> {
        let client = self.site.admin.clone();
        match kind {
            Kind::Account => Api::all_with(client, &resource(kind)),
            Kind::Zone | Kind::Record => Api::namespaced_with(client, self.home(), &resource(kind)),
        }
    }

    /// Creates the token Secret and the account.
    pub async fn connect(&self) {
        let secret = json!({ "metadata": { "name": SECRET }, "stringData": { names::DEFAULT_TOKEN_KEY: self.token } });
        let secret: Secret = serde_json::from_value(secret).unwrap();
        self.namespace
            .api()
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        let reference = json!({ "name": SECRET, "namespace": self.home() });
        let spec = json!({ "accountID": self.account_id, "tokenSecretRef": reference });
        self.create(Kind::Account, self.home(), &[], spec).await;
    }

    /// Creates a Zone resource for the tenant's domain of that name.
    pub async fn zone(&self, name: &str, annotations: &[(&str, &str)]) {
        let spec = json!({ "name": domain(name, self.home()), "accountRef": { "name": self.home() } });
        self.create(Kind::Zone, name, annotations, spec).await;
    }

    /// Creates a record resource; `fields` are those of the spec but for the zone.
    pub async fn record(&self, name: &str, zone: &str, annotations: &[(&str, &str)], fields: Value) {
        let mut spec = fields;
        spec["zoneRef"] = json!({ "name": zone });
        self.create(Kind::Record, name, annotations, spec).await;
    }

    async fn create(&self, kind: Kind, name: &str, annotations: &[(&str, &str)], spec: Value) {
        let mut object = DynamicObject::new(name, &resource(kind)).data(json!({ "spec": spec }));
        let annotations = annotations.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        object.annotations_mut().extend(annotations);
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a record resource, however often that has to be asked for.
    pub async fn insist_on_record(&self, name: &str, zone: &str, fields: Value) -> Result<(), WaitError> {
        let mut spec = fields;
        spec["zoneRef"] = json!({ "name": zone });
        let object = DynamicObject::new(name, &resource(Kind::Record)).data(json!({ "spec": spec }));
        let api = self.api(Kind::Record);
        let created = async || match api.create(&PostParams::default(), &object).await {
            Ok(_) => Ok(Some(())),
            // By a try whose answer was lost.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Some(())),
            Err(error) => Err(error),
        };
        self.until(&format!("Record {name} created"), created).await
    }

    /// Sets annotations of a resource.
    pub async fn annotate(&self, kind: Kind, name: &str, annotations: &[(&str, &str)]) {
        let annotations: BTreeMap<_, _> = annotations.iter().copied().collect();
        let patch = Patch::Merge(json!({ "metadata": { "annotations": annotations } }));
        self.api(kind)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Changes the spec of a resource.
    pub async fn change(&self, kind: Kind, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api(kind)
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Asks for deletion.
    pub async fn delete(&self, kind: Kind, name: &str) {
        self.api(kind).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Asks for deletion of the token Secret.
    pub async fn delete_secret(&self) {
        let secrets: Api<Secret> = self.namespace.api();
        secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a resource is Ready for its spec as it stands, and everything is written that a finished pass writes.
    pub async fn settled(&self, kind: Kind, name: &str) -> Result<DynamicObject, WaitError> {
        let api = self.api(kind);
        let probe = async || api.get(name).await.map(|it| is_settled(kind, &it).then_some(it));
        self.until(&format!("{kind:?} {name} settled"), probe).await
    }

    /// Waits until a resource gives this reason for not being Ready.
    pub async fn waits(&self, kind: Kind, name: &str, reason: &str) -> Result<(), WaitError> {
        let api = self.api(kind);
        let probe = async || {
            let object = api.get(name).await?;
            let told = ready(&object).is_some_and(|it| it["status"] == "False" && it["reason"] == reason);
            Ok::<_, kube::Error>(told.then_some(()))
        };
        self.until(&format!("{kind:?} {name} {reason}"), probe).await
    }

    /// Waits until a resource is gone.
    pub async fn gone(&self, kind: Kind, name: &str) -> Result<(), WaitError> {
        let api = self.api(kind);
        let probe = async || api.get_opt(name).await.map(|it| it.is_none().then_some(()));
        self.until(&format!("{kind:?} {name} gone"), probe).await
    }

    /// Waits until the token Secret is gone.
    pub async fn secret_gone(&self) -> Result<(), WaitError> {
        let secrets: Api<Secret> = self.namespace.api();
        let probe = async || secrets.get_opt(SECRET).await.map(|it| it.is_none().then_some(()));
        self.until("the token Secret gone", probe).await
    }

    /// Somebody else makes a record in the zone `home`.
    pub fn foreign(&self, body: &Value) -> Value {
        let home = domain("home", self.home());
        let body = body.as_object().unwrap();
        self.site.cloudflare.foreign_create(&home, body).unwrap()
    }

    /// The record of that id in the zone `home`, as Cloudflare has it.
    pub fn remote(&self, id: &Value) -> Option<Value> {
        let records = self.site.cloudflare.records(&domain("home", self.home()))?;
        records.into_iter().find(|record| &record["id"] == id)
    }

    /// Everything in the tenant's account, a line each: zones, and their records as `zone type name content ttl`.
    pub fn account(&self) -> BTreeSet<String> {
        self.account_in(&self.site.cloudflare)
    }

    /// [`Tenant::account`] in another simulator that has the same account.
    pub fn account_in(&self, cloudflare: &Simulator) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for zone in cloudflare.zones() {
            if zone["account"]["id"] != *self.account_id {
                continue;
            }
            let name = zone["name"].as_str().unwrap();
            let short = name.split(&format!("-{}", self.home())).next().unwrap();
            lines.insert(short.to_owned());
            for record in cloudflare.records(name).unwrap() {
                let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
                let label = text("name");
                let label = label.strip_suffix(&format!(".{name}")).unwrap_or("@");
                let line = format!("{short} {} {label} {} {}", text("type"), text("content"), record["ttl"]);
                assert!(lines.insert(line.clone()), "twice: {line}");
            }
        }
        lines
    }

    /// How often each kind of write took effect at Cloudflare, entries of batches one by one.
    pub fn effects(&self) -> BTreeMap<String, usize> {
        let mut effects = BTreeMap::new();
        let mut count = |method: &str, route: &str, times: usize| {
            if times > 0 {
                // A create is a create wherever its id is put in.
                *effects.entry(format!("{method} {route}")).or_default() += times;
            }
        };
        for call in self.calls() {
            let route = call.route.as_deref().unwrap_or_default();
            if call.effect != Effect::Applied {
                continue;
            }
            match route.strip_suffix("/batch") {
                None => count(&call.method, route.trim_end_matches("/{dns_record_id}"), 1),
                Some(route) => {
                    let body = call.body.unwrap_or_default();
                    for (list, method) in [
                        ("posts", "POST"),
                        ("patches", "PATCH"),
                        ("puts", "PUT"),
                        ("deletes", "DELETE"),
                    ] {
                        count(method, route, body[list].as_array().map_or(0, Vec::len));
                    }
                }
            }
        }
        effects
    }

    /// The calls made with the tenant's token.
    pub fn calls(&self) -> Vec<kflare_sim::CallRecord> {
        let mut calls = self.site.cloudflare.calls();
        calls.retain(|call| call.token_id.as_ref() == Some(&self.token_id));
        calls
    }

    /// Plays a story with controllers. When it fails, says what there is and what they did.
    pub async fn tell(&self, lives: &mut Vec<Life>, story: impl AsyncFnOnce(&mut Vec<Life>) -> Result<(), WaitError>) {
        if let Err(failure) = self.outcome(lives, story).await {
            panic!("{failure}");
        }
    }

    /// Plays a story with controllers. Its failure says what there is and what they did.
    pub async fn outcome<T>(
        &self,
        lives: &mut Vec<Life>,
        story: impl AsyncFnOnce(&mut Vec<Life>) -> Result<T, WaitError>,
    ) -> Result<T, String> {
        let played = AssertUnwindSafe(story(lives)).catch_unwind().await;
        let failure = match played {
            Ok(Ok(told)) => return Ok(told),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => message(&*panic),
        };
        let mut told = format!("{failure}\n{}", self.told().await);
        for (number, life) in lives.iter().enumerate() {
            let _ = writeln!(told, "controller {}, {}", number + 1, life.told());
        }
        Err(told)
    }

    /// What there is and what was done, for a person.
    async fn told(&self) -> String {
        let mut told = diagnose(&self.site.admin, self.home()).await;
        let _ = writeln!(told, "in the account: {:#?}", self.account());
        told.push_str("calls that reached Cloudflare:\n");
        for call in self.calls() {
            let body = call.body.map(|body| body.to_string()).unwrap_or_default();
            let _ = writeln!(
                told,
                "  #{} {} {} {body} -> {:?} {:?}",
                call.sequence, call.method, call.path, call.status, call.error_code
            );
        }
        told
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}

/// The domain that a tenant's zone of that name stands for.
fn domain(zone: &str, tenant: &str) -> String {
    format!("{zone}-{tenant}.example")
}

fn resource(kind: Kind) -> ApiResource {
    match kind {
        Kind::Account => ApiResource::erase::<CloudflareAccount>(&()),
        Kind::Zone => ApiResource::erase::<Zone>(&()),
        Kind::Record => ApiResource::erase::<DNSRecord>(&()),
    }
}

/// The Ready condition, if it speaks of the spec as it stands.
fn ready(object: &DynamicObject) -> Option<&Value> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    let ready = conditions.iter().find(|it| it["type"] == "Ready")?;
    (ready["observedGeneration"].as_i64() == object.metadata.generation).then_some(ready)
}

fn is_settled(kind: Kind, object: &DynamicObject) -> bool {
    let claimed = match kind {
        Kind::Account => true,
        Kind::Zone => object.labels().contains_key(names::ZONE_ID),
        Kind::Record => object.labels().contains_key(names::RECORD_ID),
    };
    let held = object.finalizers().iter().any(|it| it == names::FINALIZER);
    let announced = object.annotations().contains_key(names::CREATE_INTENT);
    claimed && held && !announced && ready(object).is_some_and(|it| it["status"] == "True")
}
