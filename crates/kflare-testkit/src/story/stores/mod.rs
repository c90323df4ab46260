//! KV namespaces, R2 buckets, D1 databases and queues in stories: what happens to them, and what they are to be at Cloudflare.
//! Written against Cloudflare's documentation, not with the code under test.

mod remote;

use kflare_api::names;
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, Setting, Step, Target};
use crate::simulation::NAMESPACE;
use remote::creation;

pub use remote::{differences, empty_buckets, holdings, identity, meddle};

/// The kinds and their plurals.
pub const KINDS: [(&str, &str); 4] = [
    ("KVNamespace", "kvnamespaces"),
    ("R2Bucket", "r2buckets"),
    ("D1Database", "d1databases"),
    ("Queue", "queues"),
];

const SECOND: u64 = 1000;

/// Few names, so that look-alikes meet. Those with `eu` in them are of that jurisdiction.
const TITLES: [&str; 3] = ["cache", "Cache", "sessions of the shop"];
const BUCKETS: [&str; 3] = ["assets", "logs", "eu-data"];
const DATABASES: [&str; 3] = ["shop", "ledger_1", "eu-orders"];
const QUEUES: [&str; 3] = ["jobs", "mails", "eu-events"];

/// CORS rules as specs have them, and as Cloudflare has them.
fn cors(variant: usize) -> (Value, Value) {
    let origins = ["https://a.example", "https://b.example"];
    match variant % 4 {
        0 => (json!([]), Value::Null),
        1 => (
            json!([{ "allowedOrigins": ["*"], "allowedMethods": ["GET"] }]),
            json!([{ "allowed": { "origins": ["*"], "methods": ["GET"] } }]),
        ),
        2 => (
            json!([{ "allowedOrigins": origins, "allowedMethods": ["PUT", "GET"], "allowedHeaders": ["Range"],
                "exposeHeaders": ["ETag"], "maxAgeSeconds": 3600 }]),
            json!([{ "allowed": { "origins": origins, "methods": ["GET", "PUT"], "headers": ["range"] },
                "exposeHeaders": ["etag"], "maxAgeSeconds": 3600 }]),
        ),
        _ => (
            json!([{ "allowedOrigins": ["*"], "allowedMethods": ["GET"] }, { "allowedOrigins": ["null"], "allowedMethods": ["HEAD"] }]),
            json!([{ "allowed": { "origins": ["*"], "methods": ["GET"] } }, { "allowed": { "origins": ["null"], "methods": ["HEAD"] } }]),
        ),
    }
}

/// Lifecycle rules as specs have them, and as Cloudflare has them.
fn lifecycle(variant: usize) -> (Value, Value) {
    let age = |seconds: u64| json!({ "condition": { "type": "Age", "maxAge": seconds } });
    match variant % 3 {
        0 => (json!([]), json!([])),
        1 => (
            json!([{ "id": "logs", "prefix": "logs/", "deleteAfter": "30d" }]),
            json!([{ "id": "logs", "enabled": true, "conditions": { "prefix": "logs/" },
                "deleteObjectsTransition": age(2_592_000) }]),
        ),
        _ => (
            json!([{ "id": "z", "enabled": false, "deleteOn": "2027-01-31" },
                { "id": "a", "abortMultipartUploadsAfter": "12h", "infrequentAccessAfter": "90m" }]),
            json!([{ "id": "a", "enabled": true, "conditions": { "prefix": "" },
                "abortMultipartUploadsTransition": age(43_200),
                "storageClassTransitions": [{ "condition": { "type": "Age", "maxAge": 5400 }, "storageClass": "InfrequentAccess" }] },
                { "id": "z", "enabled": false, "conditions": { "prefix": "" },
                "deleteObjectsTransition": { "condition": { "type": "Date", "date": "2027-01-31T00:00:00Z" } } }]),
        ),
    }
}

/// How many variants there are to look through.
const VARIANTS: usize = 4;

fn jurisdiction(name: &str) -> Option<&'static str> {
    name.contains("eu").then_some("eu")
}

struct Author<'a> {
    rng: StdRng,
    setting: &'a Setting,
    length_ms: u64,
    steps: Vec<Step>,
    made: Vec<(usize, Target)>,
}

/// What happens to them in the story of a seed, beside what happens to zones and records; and at its very end.
pub fn acts(seed: u64, setting: &Setting, length_ms: u64) -> (Vec<Step>, Vec<Act>) {
    let mut author = Author {
        rng: StdRng::seed_from_u64(seed ^ 0x7374_6f72_6573),
        setting,
        length_ms,
        steps: Vec::new(),
        made: Vec::new(),
    };
    author.creations();
    for _ in 0..author.rng.random_range(0..12) {
        author.something();
    }
    let encore = if author.rng.random_bool(0.3) {
        author.edit().into_iter().collect()
    } else {
        Vec::new()
    };
    (author.steps, encore)
}

impl Author<'_> {
    fn moment(&mut self) -> u64 {
        if self.rng.random_bool(0.5) {
            self.rng.random_range(0..20 * SECOND)
        } else {
            self.rng.random_range(0..self.length_ms)
        }
    }

    fn at(&mut self, at_ms: u64, act: Act) {
        self.steps.push(Step { at_ms, act });
    }

    fn creations(&mut self) {
        for cluster in 0..self.setting.clusters {
            for (kind, _) in KINDS {
                for number in 0..self.rng.random_range(0..4) {
                    let at = self.moment();
                    let name = format!("{}{number}", kind[..2].to_lowercase());
                    self.create(at, cluster, kind, &name);
                }
            }
        }
    }

    fn create(&mut self, at: u64, cluster: usize, kind: &str, name: &str) {
        let mut annotations = Map::new();
        if self.rng.random_bool(0.3)
            && let (annotation, Some(value)) = self.annotation()
        {
            annotations.insert(annotation, json!(value));
        }
        let manifest = json!({
            "apiVersion": names::API_VERSION, "kind": kind,
            "metadata": { "name": name, "namespace": NAMESPACE, "annotations": annotations },
            "spec": self.spec(kind),
        });
        self.at(at, Act::Create { cluster, manifest });
        let target = Target {
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        self.made.push((cluster, target));
    }

    fn pick<'b>(&mut self, all: &[&'b str]) -> &'b str {
        all.choose(&mut self.rng).copied().unwrap_or_default()
    }

    fn spec(&mut self, kind: &str) -> Value {
        let mut spec = json!({ "accountRef": { "name": "main" } });
        match kind {
            "KVNamespace" => spec["title"] = json!(self.pick(&TITLES)),
            "R2Bucket" => {
                let name = self.pick(&BUCKETS);
                spec["name"] = json!(name);
                for _ in 0..2 {
                    if self.rng.random_bool(0.4) {
                        json_patch::merge(&mut spec, &self.bucket_fields());
                    }
                }
            }
            "Queue" => {
                spec["name"] = json!(self.pick(&QUEUES));
                for _ in 0..2 {
                    if self.rng.random_bool(0.4) {
                        json_patch::merge(&mut spec, &self.queue_fields());
                    }
                }
            }
            _ => {
                let name = self.pick(&DATABASES);
                spec["name"] = json!(name);
                if self.rng.random_bool(0.4) {
                    spec["readReplication"] = json!({ "mode": self.pick(&["auto", "disabled"]) });
                }
            }
        }
        if let Some(jurisdiction) = jurisdiction(spec["name"].as_str().unwrap_or_default()) {
            spec["jurisdiction"] = json!(jurisdiction);
        } else if matches!(kind, "R2Bucket" | "D1Database") && self.rng.random_bool(0.2) {
            spec["locationHint"] = json!(self.pick(&["wnam", "weur", "oc"]));
        }
        spec
    }

    fn bucket_fields(&mut self) -> Value {
        match self.rng.random_range(0..3) {
            0 => json!({ "storageClass": self.pick(&["Standard", "InfrequentAccess"]) }),
            1 => json!({ "cors": cors(self.rng.random_range(0..VARIANTS)).0 }),
            _ => json!({ "lifecycle": lifecycle(self.rng.random_range(0..VARIANTS)).0 }),
        }
    }

    fn queue_fields(&mut self) -> Value {
        match self.rng.random_range(0..3) {
            0 => json!({ "deliveryDelaySeconds": self.rng.random_range(0..3) }),
            1 => json!({ "messageRetentionSeconds": self.rng.random_range(60..63) }),
            _ => json!({ "deliveryPaused": self.rng.random_bool(0.5) }),
        }
    }

    fn annotation(&mut self) -> (String, Option<String>) {
        let (annotation, values): (&str, &[&str]) = match self.rng.random_range(0..5) {
            0 | 1 => (
                names::ADOPTION_POLICY,
                &["adopt", "adopt-or-create", "adopt-if-matching"],
            ),
            2 => (names::DELETION_POLICY, &["delete", "retain"]),
            3 => (names::PAUSED, &["true", "false"]),
            _ => (names::MODE, &["observe", "manage"]),
        };
        (annotation.to_owned(), Some(self.pick(values).to_owned()))
    }

    fn edit(&mut self) -> Option<Act> {
        let (cluster, target) = self.made.choose(&mut self.rng).cloned()?;
        let change = match target.kind.as_str() {
            "KVNamespace" => json!({ "title": self.pick(&TITLES) }),
            "R2Bucket" if self.rng.random_bool(0.2) => json!({ "cors": null, "lifecycle": null }),
            "R2Bucket" => self.bucket_fields(),
            "Queue" if self.rng.random_bool(0.2) => json!({ "deliveryDelaySeconds": null, "deliveryPaused": null }),
            "Queue" => self.queue_fields(),
            _ => json!({ "readReplication": { "mode": self.pick(&["auto", "disabled"]) } }),
        };
        Some(Act::Edit {
            cluster,
            target,
            change,
        })
    }

    fn something(&mut self) {
        let at = self.rng.random_range(0..self.length_ms);
        let act = match self.rng.random_range(0..10) {
            0..=2 => self.edit(),
            3 => self.made.choose(&mut self.rng).cloned().map(|(cluster, target)| {
                let (annotation, value) = self.annotation();
                Act::Annotate {
                    cluster,
                    target,
                    annotation,
                    value: value.filter(|_| self.rng.random_bool(0.7)),
                }
            }),
            4 => self.made.choose(&mut self.rng).cloned().map(|(cluster, target)| {
                if self.rng.random_bool(0.5) {
                    let after = at + self.rng.random_range(1..90) * SECOND;
                    self.create(after, cluster, &target.kind.clone(), &target.name.clone());
                }
                Act::Delete { cluster, target }
            }),
            5 | 6 => {
                let kind = self.pick(&KINDS.map(|(kind, _)| kind));
                let spec = self.spec(kind);
                Some(Act::ForeignCall {
                    call: creation(kind, &spec),
                })
            }
            _ => Some(Act::ForeignMeddling {
                pick: self.rng.random_range(0..12),
                number: self.rng.random_range(0..24),
            }),
        };
        if let Some(act) = act {
            self.at(at, act);
        }
    }
}
