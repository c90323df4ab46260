//! Makes a story up from a seed.

mod faults;
mod setting;

use std::str::FromStr;

use kflare_api::{RecordType, names};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, Setting, Step, Story, Target};
use super::vocabulary::{self, DOMAINS};
use super::{lists, rulesets, stores, transforms, workers};
use crate::simulation::NAMESPACE;
use setting::setting;

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;

/// The story of that seed.
pub fn story(seed: u64) -> Story {
    let mut author = Author::new(seed);
    author.zones();
    author.records();
    author.foreigners();
    author.users();
    if author.rng.random_bool(0.25) {
        author.contest();
    }
    author.faults();
    author.kills();
    let (stores, last) = stores::acts(seed, &author.setting, author.length_ms);
    author.steps.extend(stores);
    author.encore.extend(last);
    let (lists, names) = lists::steps(seed, &author.setting, author.length_ms);
    author.steps.extend(lists);
    author
        .steps
        .extend(transforms::steps(seed, &author.setting, author.length_ms));
    author
        .steps
        .extend(workers::steps(seed, &author.setting, author.length_ms));
    let (rules, last) = rulesets::acts(seed, &author.setting, author.length_ms, &names);
    author.steps.extend(rules);
    author.encore.extend(last);
    author.steps.extend(faults::overtaken_deletes(seed, &author.setting));
    let mut steps = author.steps;
    steps.extend(super::tunnels::steps(seed, author.setting.clusters, author.length_ms));
    steps.sort_by_key(|step| step.at_ms);
    Story {
        seed,
        setting: author.setting,
        steps,
        encore: author.encore,
    }
}

struct Author {
    rng: StdRng,
    setting: Setting,
    /// How long the acts last.
    length_ms: u64,
    steps: Vec<Step>,
    encore: Vec<Act>,
    /// What was created, with its cluster.
    records: Vec<(usize, Target, Map<String, Value>)>,
    zones: Vec<(usize, Target)>,
}

impl Author {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x0073_746f_7269_6573);
        let setting = setting(&mut rng);
        let length_ms = rng.random_range(10..60) * MINUTE;
        Self {
            rng,
            setting,
            length_ms,
            steps: Vec::new(),
            encore: Vec::new(),
            records: Vec::new(),
            zones: Vec::new(),
        }
    }

    fn at(&mut self, at_ms: u64, act: Act) {
        self.steps.push(Step { at_ms, act });
    }

    /// A moment of the story.
    fn moment(&mut self) -> u64 {
        self.rng.random_range(0..self.length_ms)
    }

    /// A moment near the beginning, when most things are made.
    fn early(&mut self) -> u64 {
        if self.rng.random_bool(0.75) {
            self.rng.random_range(0..20 * SECOND)
        } else {
            self.moment()
        }
    }

    fn domain(&mut self) -> String {
        (*DOMAINS.choose(&mut self.rng).unwrap_or(&DOMAINS[0])).to_owned()
    }

    fn zones(&mut self) {
        for cluster in 0..self.setting.clusters {
            for domain in DOMAINS {
                if domain == DOMAINS[1] && self.rng.random_bool(0.4) {
                    continue;
                }
                let exists = cluster > 0 || self.setting.existing_zones.iter().any(|it| it == domain);
                let mut annotations = Map::new();
                if exists && self.rng.random_bool(0.9) {
                    let policy = if self.rng.random_bool(0.5) {
                        "adopt"
                    } else {
                        "adopt-or-create"
                    };
                    annotations.insert(names::ADOPTION_POLICY.to_owned(), json!(policy));
                }
                let mut spec = json!({ "name": domain, "accountRef": { "name": "main" }, "type": "full" });
                if self.rng.random_bool(0.1) {
                    spec["paused"] = json!(self.rng.random_bool(0.5));
                }
                let name = zone_name(domain);
                let at = self.early();
                self.create(at, cluster, "Zone", &name, &annotations, &spec);
                let target = target("Zone", &name);
                self.zones.push((cluster, target));
            }
        }
    }

    fn create(
        &mut self,
        at: u64,
        cluster: usize,
        kind: &str,
        name: &str,
        annotations: &Map<String, Value>,
        spec: &Value,
    ) {
        let manifest = manifest(kind, name, annotations, spec);
        self.at(at, Act::Create { cluster, manifest });
    }

    fn records(&mut self) {
        for cluster in 0..self.setting.clusters {
            for number in 0..self.rng.random_range(3..12) {
                let at = self.early();
                let name = format!("r{number}");
                self.record(at, cluster, &name);
            }
        }
    }

    fn record(&mut self, at: u64, cluster: usize, name: &str) {
        let (annotations, spec) = self.record_manifest();
        let whole = Value::Object(spec.clone());
        self.create(at, cluster, "DNSRecord", name, &annotations, &whole);
        self.records.push((cluster, target("DNSRecord", name), spec));
    }

    fn record_manifest(&mut self) -> (Map<String, Value>, Map<String, Value>) {
        let mut spec = vocabulary::spec(&mut self.rng);
        let domain = self.domain();
        spec.insert("zoneRef".to_owned(), json!({ "name": zone_name(&domain) }));
        let mut annotations = Map::new();
        for _ in 0..2 {
            if self.rng.random_bool(0.15)
                && let (annotation, Some(value)) = self.annotation()
            {
                annotations.insert(annotation, json!(value));
            }
        }
        (annotations, spec)
    }

    fn annotation(&mut self) -> (String, Option<String>) {
        let (annotation, values): (&str, &[&str]) = match self.rng.random_range(0..6) {
            0 | 1 => (
                names::ADOPTION_POLICY,
                &["adopt", "adopt-or-create", "adopt-if-matching"],
            ),
            2 => (names::DELETION_POLICY, &["delete", "retain"]),
            3 => (names::PAUSED, &["true", "false", "yes"]),
            4 => (names::MODE, &["observe", "manage"]),
            _ => (names::DRIFT_CHECK_INTERVAL, &["90s", "0s", "5m"]),
        };
        let value = values.choose(&mut self.rng).map(|value| (*value).to_owned());
        (annotation.to_owned(), value)
    }

    /// What others have made in the account: half of it just what a resource asks for.
    fn foreigners(&mut self) {
        for _ in 0..self.rng.random_range(0..6) {
            let at = self.early();
            self.foreign_create(at);
        }
    }

    fn foreign_create(&mut self, at: u64) {
        let spec = if self.rng.random_bool(0.5) {
            self.records.choose(&mut self.rng).map(|(_, _, spec)| spec.clone())
        } else {
            None
        };
        let spec = spec.unwrap_or_else(|| vocabulary::spec(&mut self.rng));
        let mut body = vocabulary::body(&Value::Object(spec));
        if self.rng.random_bool(0.3) {
            body.insert("comment".to_owned(), json!("made by hand"));
        }
        let zone = self.domain();
        self.at(
            at,
            Act::ForeignCreate {
                zone,
                body: Value::Object(body),
            },
        );
    }

    fn users(&mut self) {
        for number in 0..self.rng.random_range(2..24) {
            let at = self.moment();
            let act = self.user_act(number, at);
            if let Some(act) = act {
                self.at(at, act);
            }
        }
        for number in 0..self.rng.random_range(0..5) {
            if let Some(act) = self.encore_act(number) {
                self.encore.push(act);
            }
        }
    }

    fn some_record(&mut self) -> Option<(usize, Target, Map<String, Value>)> {
        self.records.choose(&mut self.rng).cloned()
    }

    fn some_resource(&mut self) -> Option<(usize, Target)> {
        if self.rng.random_bool(0.15) {
            self.zones.choose(&mut self.rng).cloned()
        } else {
            self.some_record().map(|(cluster, target, _)| (cluster, target))
        }
    }

    fn edit(&mut self) -> Option<Act> {
        if self.rng.random_bool(0.1) {
            let (cluster, target) = self.zones.choose(&mut self.rng).cloned()?;
            let change = match self.rng.random_range(0..4) {
                0 => json!({ "plan": *["free", "pro"].choose(&mut self.rng)? }),
                1 => json!({ "paused": null }),
                _ => json!({ "paused": self.rng.random_bool(0.5) }),
            };
            return Some(Act::Edit {
                cluster,
                target,
                change,
            });
        }
        let (cluster, target, spec) = self.some_record()?;
        let kind = RecordType::from_str(spec.get("type")?.as_str()?).ok()?;
        let change = vocabulary::edit(&mut self.rng, kind);
        Some(Act::Edit {
            cluster,
            target,
            change,
        })
    }

    fn annotate(&mut self) -> Option<Act> {
        let (cluster, target) = self.some_resource()?;
        let (annotation, value) = self.annotation();
        let value = value.filter(|_| self.rng.random_bool(0.7));
        Some(Act::Annotate {
            cluster,
            target,
            annotation,
            value,
        })
    }

    fn user_act(&mut self, number: u64, at: u64) -> Option<Act> {
        let cluster = self.rng.random_range(0..self.setting.clusters);
        match self.rng.random_range(0..20) {
            0..=4 => self.edit(),
            5..=7 => self.annotate(),
            8 => {
                let (cluster, target, _) = self.some_record()?;
                let value = Some(format!("at {at}"));
                Some(Act::Annotate {
                    cluster,
                    target,
                    annotation: names::RECONCILE_AT.to_owned(),
                    value,
                })
            }
            9 | 10 => {
                let (cluster, target, _) = self.some_record()?;
                // Half of what is deleted comes back under the same name soon: renamed, or as it was.
                if self.rng.random_bool(0.5) {
                    let after = at + self.rng.random_range(1..90) * SECOND;
                    let name = target.name.clone();
                    self.record(after, cluster, &name);
                }
                Some(Act::Delete { cluster, target })
            }
            11 => {
                let (cluster, target) = self.zones.choose(&mut self.rng).cloned()?;
                Some(Act::Delete { cluster, target })
            }
            12 => {
                self.record(at, cluster, &format!("late{number}"));
                None
            }
            13 => Some(Act::RotateToken {
                cluster,
                grace_ms: self.rng.random_range(0..30) * SECOND,
            }),
            14 => {
                let (cluster, target, _) = self.some_record()?;
                let value = self
                    .rng
                    .random_bool(0.3)
                    .then(|| "0123456789abcdef0123456789abcdef".to_owned());
                Some(Act::Label {
                    cluster,
                    target,
                    label: "kflare.dev/record-id".to_owned(),
                    value,
                })
            }
            15 | 16 => {
                let (zone, pick) = (self.domain(), self.rng.random_range(0..12));
                Some(Act::ForeignPatch {
                    zone,
                    pick,
                    body: vocabulary::foreign_change(&mut self.rng),
                })
            }
            17 => Some(Act::ForeignDelete {
                zone: self.domain(),
                pick: self.rng.random_range(0..12),
            }),
            18 if self.rng.random_bool(0.2) => Some(Act::ForeignDeleteZone { zone: self.domain() }),
            _ => {
                self.foreign_create(at);
                None
            }
        }
    }

    fn encore_act(&mut self, number: u64) -> Option<Act> {
        match self.rng.random_range(0..4) {
            0 => {
                let cluster = self.rng.random_range(0..self.setting.clusters);
                let (annotations, spec) = self.record_manifest();
                let manifest = manifest(
                    "DNSRecord",
                    &format!("encore{number}"),
                    &annotations,
                    &Value::Object(spec),
                );
                Some(Act::Create { cluster, manifest })
            }
            1 => self.annotate(),
            _ => self.edit(),
        }
    }

    /// Somebody who changes a field again and again.
    fn contest(&mut self) {
        let (zone, pick) = (self.domain(), self.rng.random_range(0..12));
        let start = self.moment();
        let every = self.rng.random_range(2..9) * MINUTE;
        for round in 0..self.rng.random_range(4..15) {
            let body = json!({ "ttl": if round % 2 == 0 { 120 } else { 180 }, "comment": format!("round {round}") });
            self.at(
                start + round * every,
                Act::ForeignPatch {
                    zone: zone.clone(),
                    pick,
                    body,
                },
            );
        }
    }
}

fn target(kind: &str, name: &str) -> Target {
    Target {
        kind: kind.to_owned(),
        name: name.to_owned(),
    }
}

/// The name of the resource of a domain.
fn zone_name(domain: &str) -> String {
    domain.split('.').next().unwrap_or_default().to_owned()
}

fn manifest(kind: &str, name: &str, annotations: &Map<String, Value>, spec: &Value) -> Value {
    json!({
        "apiVersion": names::API_VERSION, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
        "spec": spec,
    })
}
