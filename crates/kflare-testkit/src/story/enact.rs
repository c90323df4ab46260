//! Lets the acts of a story happen.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kflare_api::names;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::act::{Act, ApiFault, Cut, Target};
use super::cast::Replica;
use super::identity::{identity, text};
use super::ledger::replica_name;
use super::perform::{KINDS, Stage, base64, unbase64};
use super::{lists, rulesets, stores, workers};
use crate::memory_api::{Fault, FaultRule, ObjectId, RequestInfo, Symptom, WatchCut};
use crate::simulation::NAMESPACE;

impl Stage {
    /// Lets something happen. Without a cast, what concerns replicas does nothing.
    pub(super) fn act(&self, act: &Act, cast: &[Vec<Replica>]) {
        self.clusters[0].note(format!("act {act}"));
        match act {
            Act::Create { cluster, manifest } => {
                self.ledger.asked(*cluster, manifest);
                if let Some(world) = self.clusters.get(*cluster) {
                    drop(world.api.create(manifest.clone()));
                }
            }
            Act::Edit {
                cluster,
                target,
                change,
            } => {
                self.ledger.edited(*cluster);
                let before = self.named(*cluster, target);
                self.edit(*cluster, target, |object| {
                    // The schema would refuse a value of another type.
                    let fits = |field: &str| change[field].is_null() || !object["spec"][field].is_null();
                    let mut spec = object["spec"].clone();
                    json_patch::merge(&mut spec, change);
                    // As would two settings that exclude each other.
                    let both = spec["settings"]["ipv4Only"] == true && spec["settings"]["ipv6Only"] == true;
                    let members = |object: &Value| object["data"].as_object().cloned().unwrap_or_default();
                    let known = members(&object["spec"]);
                    let same_type = members(change).keys().all(|member| known.contains_key(member));
                    if fits("data") && fits("content") && same_type && !both {
                        object["spec"] = spec;
                    }
                });
                if let (Some(before), Some(after)) = (before, self.named(*cluster, target)) {
                    self.ledger.renamed(*cluster, &before, &after);
                }
            }
            Act::Annotate {
                cluster,
                target,
                annotation,
                value,
            } => {
                self.edit(*cluster, target, |object| {
                    set(&mut object["metadata"]["annotations"], annotation, value.as_deref());
                });
                self.ledger.annotated(*cluster, target, annotation);
                if let Some(object) = self
                    .clusters
                    .get(*cluster)
                    .and_then(|world| world.api.get(&id_of(target)))
                {
                    self.ledger.asked(*cluster, &object);
                }
            }
            Act::Label {
                cluster,
                target,
                label,
                value,
            } => {
                self.edit(*cluster, target, |object| {
                    set(&mut object["metadata"]["labels"], label, value.as_deref());
                });
            }
            Act::Delete { cluster, target } => {
                if let Some(world) = self.clusters.get(*cluster) {
                    drop(world.api.delete(&id_of(target)));
                }
            }
            Act::RotateToken { cluster, grace_ms } => self.rotate(*cluster, Duration::from_millis(*grace_ms)),
            Act::ForeignCreate { zone, body } => self.ledger.foreign(|cloudflare| {
                if let Some(body) = body.as_object() {
                    drop(cloudflare.foreign_create(zone, body));
                }
            }),
            Act::ForeignPatch { zone, pick, body } => self.ledger.foreign(|cloudflare| {
                if let (Some(id), Some(body)) = (
                    picked(&cloudflare.records(zone).unwrap_or_default(), *pick),
                    body.as_object(),
                ) {
                    drop(cloudflare.foreign_patch(zone, &id, body));
                }
            }),
            Act::ForeignDelete { zone, pick } => self.ledger.foreign(|cloudflare| {
                if let Some(id) = picked(&cloudflare.records(zone).unwrap_or_default(), *pick) {
                    drop(cloudflare.foreign_delete(zone, &id));
                }
            }),
            Act::ForeignDeleteZone { zone } => self
                .ledger
                .foreign(|cloudflare| drop(cloudflare.foreign_delete_zone(zone))),
            Act::ForeignCall { call } => self.ledger.foreign(|cloudflare| drop(cloudflare.foreign_call(call))),
            Act::ForeignMeddling { pick, number } => {
                self.ledger
                    .foreign(|cloudflare| stores::meddle(cloudflare, *pick, *number));
            }
            Act::ForeignRules { zone, phase, edit } => self
                .ledger
                .foreign(|cloudflare| rulesets::meddle(cloudflare, zone, *phase, edit)),
            Act::ForeignList { name, edit } => self.ledger.foreign(|cloudflare| lists::meddle(cloudflare, name, edit)),
            Act::ForeignTransforms { zone, body } => self.ledger.foreign(|cloudflare| {
                if let Some(body) = body.as_object() {
                    drop(cloudflare.foreign_patch_managed_transforms(zone, body));
                }
            }),
            Act::WriteInput {
                cluster,
                kind,
                name,
                key,
                value,
            } => {
                if let Some(world) = self.clusters.get(*cluster) {
                    workers::write_input(world, *kind, name, key, value.as_deref());
                }
            }
            Act::ForeignDeleteTunnel { name } => self.ledger.foreign(|cloudflare| {
                for tunnel in super::tunnels::live(cloudflare) {
                    if tunnel["name"] == *name {
                        drop(cloudflare.foreign_delete_tunnel(&text(&tunnel["id"])));
                    }
                }
            }),
            Act::SpoilSecret { cluster, secret } => {
                if let Some(world) = self.clusters.get(*cluster) {
                    let id = ObjectId::namespaced::<Secret>(NAMESPACE, secret);
                    drop(
                        world
                            .api
                            .edit(&id, |object| object["data"]["TUNNEL_TOKEN"] = json!("c3BvaWx0")),
                    );
                }
            }
            Act::CloudflareFails { fault, for_ms } => {
                let cloudflare = self.clusters[0].cloudflare.clone();
                if let Ok(id) = cloudflare.add_fault(fault.clone()) {
                    after_a_while(*for_ms, move || {
                        cloudflare.remove_fault(id);
                    });
                }
            }
            Act::CloudflareOutage { for_ms } => {
                let way = self.clusters[0].way.clone();
                way.sever();
                after_a_while(*for_ms, move || way.restore());
            }
            Act::ApiFails {
                cluster,
                how,
                percent,
                for_ms,
            } => {
                let chance = f64::from(*percent) / 100.0;
                let announces = |request: &RequestInfo| request.body.contains(names::CREATE_INTENT);
                let only_announced = *how == ApiFault::OvertakesDelete;
                self.fail_api(*cluster, *for_ms, api_fault(*how), chance, move |request| {
                    !only_announced || announces(request)
                });
            }
            Act::Isolate {
                cluster,
                replica,
                for_ms,
            } => {
                let prefix = format!("{}-", replica_name(*cluster, *replica));
                let fault = Fault::LoseRequest(Symptom::Silence);
                self.fail_api(*cluster, *for_ms, fault, 1.0, move |request| {
                    request.life.starts_with(&prefix)
                });
                if let Some(world) = self.clusters.get(*cluster) {
                    let ours = KINDS.iter().map(|plural| format!("{plural}.{}", names::GROUP));
                    for resource in ours.chain(["secrets", "configmaps", "namespaces"].map(str::to_owned)) {
                        world.api.cut_watches(&resource, WatchCut::ConnectionReset);
                    }
                }
            }
            Act::CutWatches { cluster, resource, cut } => {
                self.ledger.blinded(*cluster, Duration::ZERO);
                let cut = match cut {
                    Cut::Clean => WatchCut::Clean,
                    Cut::HalfLine => WatchCut::HalfLine,
                    Cut::Reset => WatchCut::ConnectionReset,
                    Cut::Gone => WatchCut::Gone,
                };
                if let Some(world) = self.clusters.get(*cluster) {
                    world.api.cut_watches(resource, cut);
                }
            }
            Act::Compact { cluster } => {
                self.ledger.blinded(*cluster, Duration::ZERO);
                if let Some(world) = self.clusters.get(*cluster) {
                    world.api.compact();
                }
            }
            Act::Kill {
                cluster,
                replica,
                when,
                down_ms,
            } => {
                if let Some(replica) = cast.get(*cluster).and_then(|all| all.get(*replica)) {
                    replica.kill(*when, Duration::from_millis(*down_ms));
                }
            }
            Act::Restart {
                cluster,
                replica,
                down_ms,
            } => {
                if let Some(replica) = cast.get(*cluster).and_then(|all| all.get(*replica)) {
                    replica.restart(Duration::from_millis(*down_ms));
                }
            }
        }
    }

    /// Type and name of what a resource asks for.
    fn named(&self, cluster: usize, target: &Target) -> Option<(String, String)> {
        let object = self.clusters.get(cluster)?.api.get(&id_of(target))?;
        Some(identity(&object))
    }

    /// A user changes an object, if it is there.
    pub(super) fn edit(&self, cluster: usize, target: &Target, edit: impl FnOnce(&mut Value)) {
        if let Some(world) = self.clusters.get(cluster) {
            drop(world.api.edit(&id_of(target), edit));
        }
    }

    fn fail_api(
        &self,
        cluster: usize,
        for_ms: u64,
        fault: Fault,
        chance: f64,
        applies: impl Fn(&RequestInfo) -> bool + Send + Sync + 'static,
    ) {
        let Some(world) = self.clusters.get(cluster) else {
            return;
        };
        self.ledger.blinded(cluster, Duration::from_millis(for_ms));
        let on = Arc::new(AtomicBool::new(true));
        let active = on.clone();
        let rule = FaultRule::new(fault, move |request| active.load(Ordering::Relaxed) && applies(request));
        world.api.inject(rule.with_probability(chance));
        after_a_while(for_ms, move || on.store(false, Ordering::Relaxed));
    }

    fn rotate(&self, cluster: usize, grace: Duration) {
        let Some(world) = self.clusters.get(cluster) else {
            return;
        };
        self.ledger.rotated();
        let secret = ObjectId::namespaced::<Secret>("kflare-system", "token");
        let new = self.new_token();
        let mut old = String::new();
        let edited = world.api.edit(&secret, |secret| {
            old = text(&secret["data"]["CF_API_TOKEN"]);
            secret["data"]["CF_API_TOKEN"] = json!(base64(&new));
        });
        if edited.is_ok() {
            let cloudflare = world.cloudflare.clone();
            tokio::spawn(async move {
                sleep(grace).await;
                cloudflare.disable_token(&unbase64(&old));
            });
        }
    }
}

fn after_a_while(for_ms: u64, end: impl FnOnce() + Send + 'static) {
    tokio::spawn(async move {
        sleep(Duration::from_millis(for_ms)).await;
        end();
    });
}

fn api_fault(how: ApiFault) -> Fault {
    match how {
        ApiFault::ServerError => Fault::status(500, "InternalError", "simulated"),
        ApiFault::TooManyRequests => Fault::status(429, "TooManyRequests", "simulated"),
        ApiFault::Conflict => Fault::status(409, "Conflict", "simulated"),
        ApiFault::LostRequest => Fault::LoseRequest(Symptom::Silence),
        ApiFault::LostReply => Fault::LoseReply(Symptom::Silence),
        ApiFault::BrokenReply => Fault::LoseReply(Symptom::ConnectionReset),
        ApiFault::Slow => Fault::Delay(Duration::from_secs(5)),
        // Before anything can come of what was announced, as in a real server, which removes as soon as it may.
        ApiFault::OvertakesDelete => Fault::Overtake(Duration::from_millis(1)),
    }
}

/// The id of one of the records, in an order that does not depend on ids.
fn picked(records: &[Value], pick: usize) -> Option<String> {
    let mut all: Vec<(String, String)> = records
        .iter()
        .map(|it| {
            (
                format!("{} {} {}", it["name"], it["type"], it["content"]),
                text(&it["id"]),
            )
        })
        .collect();
    all.sort();
    (!all.is_empty()).then(|| all[pick % all.len()].1.clone())
}

/// The id of a resource. Only accounts are in no namespace.
fn id_of(target: &Target) -> ObjectId {
    ObjectId {
        group: names::GROUP.to_owned(),
        kind: target.kind.clone(),
        namespace: (target.kind != "CloudflareAccount").then(|| NAMESPACE.to_owned()),
        name: target.name.clone(),
    }
}

/// Sets an annotation or a label, or takes it off.
pub(super) fn set(all: &mut Value, name: &str, value: Option<&str>) {
    match value {
        Some(value) => all[name] = json!(value),
        None => {
            if let Some(all) = all.as_object_mut() {
                all.remove(name);
            }
        }
    }
}
