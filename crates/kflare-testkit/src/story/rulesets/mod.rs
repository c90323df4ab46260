//! Rules in stories: resources of some rule kinds in a zone or two, what users do to them, and what others do in the same entry
//! points.

mod remote;
mod wanted;
mod words;

use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, FaultSpec};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Map, Value, json};

use super::act::{Act, Cut, RuleEdit, Setting, Step, Target};
use super::vocabulary::DOMAINS;
use crate::simulation::NAMESPACE;
use words::{EXPRESSIONS, Form, Part};

pub use remote::{Rules, delete_those_that_name_lists, identity, meddle, name_lists};
pub use wanted::{conflicts, differences, is_refused, list_of, out_of_order};

const SECOND: u64 = 1000;

/// Whether a resource asks for a rule.
pub fn is_rule(resource: &Value) -> bool {
    words::form_of(resource).is_some()
}

/// A resource that the story made.
struct Made {
    cluster: usize,
    name: String,
    /// Which of [`words::forms`].
    form: usize,
    zone: &'static str,
}

struct Author<'a> {
    rng: StdRng,
    setting: &'a Setting,
    length_ms: u64,
    forms: &'static [Form],
    /// The forms that this story is about.
    chosen: Vec<usize>,
    /// Lists that expressions name.
    lists: &'a [String],
    steps: Vec<Step>,
    made: Vec<Made>,
}

/// What happens to rules in the story of a seed, and at its very end. `lists` are what lists are called that there may be.
pub fn acts(seed: u64, setting: &Setting, length_ms: u64, lists: &[String]) -> (Vec<Step>, Vec<Act>) {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x7275_6c65_7365_7473);
    if rng.random_bool(0.6) {
        return (Vec::new(), Vec::new());
    }
    let forms = words::forms();
    let chosen: Vec<usize> = (0..rng.random_range(1..4))
        .map(|_| rng.random_range(0..forms.len()))
        .collect();
    let mut author = Author {
        rng,
        setting,
        length_ms,
        forms,
        chosen,
        lists,
        steps: Vec::new(),
        made: Vec::new(),
    };
    author.creations();
    for _ in 0..author.rng.random_range(2..14) {
        author.something();
    }
    let encore = if author.rng.random_bool(0.4) {
        author.edit().into_iter().collect()
    } else {
        Vec::new()
    };
    (author.steps, encore)
}

impl Author<'_> {
    fn moment(&mut self) -> u64 {
        if self.rng.random_bool(0.6) {
            self.rng.random_range(0..20 * SECOND)
        } else {
            self.rng.random_range(0..self.length_ms)
        }
    }

    fn at(&mut self, at_ms: u64, act: Act) {
        self.steps.push(Step { at_ms, act });
    }

    fn zone(&mut self) -> &'static str {
        DOMAINS[usize::from(self.rng.random_bool(0.2))]
    }

    fn creations(&mut self) {
        for cluster in 0..self.setting.clusters {
            for form in self.chosen.clone() {
                for _ in 0..self.rng.random_range(1..5) {
                    let at = self.moment();
                    let zone = self.zone();
                    let number = self.made.len();
                    let letter = ["m", "a", "x"][self.rng.random_range(0..3)];
                    // The mark is made of the name: two clusters can mean the same rule.
                    let name = match self.rng.random_range(0..8) {
                        0 => "both".to_owned(),
                        _ => format!("{letter}{number}-c{cluster}"),
                    };
                    self.create(
                        at,
                        Made {
                            cluster,
                            name,
                            form,
                            zone,
                        },
                    );
                }
            }
        }
    }

    fn create(&mut self, at: u64, made: Made) {
        let mut annotations = Map::new();
        if self.rng.random_bool(0.25)
            && let (annotation, Some(value)) = self.annotation()
        {
            annotations.insert(annotation, json!(value));
        }
        let manifest = json!({
            "apiVersion": names::API_VERSION, "kind": self.forms[made.form].kind,
            "metadata": { "name": made.name, "namespace": NAMESPACE, "annotations": annotations },
            "spec": self.spec(made.form, made.zone),
        });
        let cluster = made.cluster;
        self.at(at, Act::Create { cluster, manifest });
        self.made.push(made);
    }

    fn spec(&mut self, form: usize, zone: &str) -> Value {
        let form = &self.forms[form];
        let mut spec = json!({ "zoneRef": { "name": zone.split('.').next() }, "expression": expression(&mut self.rng, self.lists) });
        let mut parts: Vec<&Part> = std::iter::once(&form.fixed).chain(&form.must).collect();
        parts.extend(form.may.iter().filter(|_| self.rng.random_bool(0.25)));
        for part in parts {
            let way = self.rng.random_range(0..part.len());
            json_patch::merge(&mut spec, &Form::patch(part, way));
        }
        for patch in [plain(&mut self.rng), plain(&mut self.rng)] {
            json_patch::merge(&mut spec, &patch);
        }
        spec
    }

    fn annotation(&mut self) -> (String, Option<String>) {
        let (annotation, values): (&str, &[&str]) = match self.rng.random_range(0..6) {
            0 | 1 => (
                names::ADOPTION_POLICY,
                &["adopt", "adopt-or-create", "adopt-if-matching"],
            ),
            2 => (names::DELETION_POLICY, &["delete", "retain"]),
            3 => (names::PAUSED, &["true", "false"]),
            4 => (names::DRIFT_CHECK_INTERVAL, &["90s", "0s"]),
            _ => (names::MODE, &["observe", "manage"]),
        };
        let value = values.choose(&mut self.rng).map(|value| (*value).to_owned());
        (annotation.to_owned(), value)
    }

    fn some(&mut self) -> Option<(usize, Target, usize)> {
        let made = self.made.choose(&mut self.rng)?;
        let target = Target {
            kind: self.forms[made.form].kind.to_owned(),
            name: made.name.clone(),
        };
        Some((made.cluster, target, made.form))
    }

    fn edit(&mut self) -> Option<Act> {
        let (cluster, target, form) = self.some()?;
        let form = &self.forms[form];
        let parts: Vec<&Part> = form.must.iter().chain(&form.may).collect();
        let change = match (self.rng.random_range(0..6), parts.choose(&mut self.rng)) {
            (0, _) => json!({ "expression": expression(&mut self.rng, self.lists) }),
            (1 | 2, _) | (_, None) => plain(&mut self.rng),
            (_, Some(part)) => Form::patch(part, self.rng.random_range(0..part.len())),
        };
        Some(Act::Edit {
            cluster,
            target,
            change,
        })
    }

    fn something(&mut self) {
        let at = self.rng.random_range(0..self.length_ms);
        let act = match self.rng.random_range(0..16) {
            0..=4 => self.edit(),
            5 | 6 => self.some().map(|(cluster, target, _)| {
                let (annotation, value) = self.annotation();
                Act::Annotate {
                    cluster,
                    target,
                    annotation,
                    value: value.filter(|_| self.rng.random_bool(0.7)),
                }
            }),
            7 | 8 => self.delete(at),
            9 => Some(Act::CloudflareFails {
                fault: self.fault(),
                for_ms: self.rng.random_range(1..180) * SECOND,
            }),
            10 => Some(Act::CutWatches {
                cluster: self.rng.random_range(0..self.setting.clusters),
                resource: format!("{}.{}", self.forms[self.chosen[0]].plural, names::GROUP),
                cut: Cut::Clean,
            }),
            _ => {
                let form = *self.chosen.choose(&mut self.rng).unwrap_or(&0);
                Some(Act::ForeignRules {
                    zone: self.zone().to_owned(),
                    phase: self.forms[form].phase,
                    edit: self.foreign_edit(form),
                })
            }
        };
        if let Some(act) = act {
            self.at(at, act);
        }
    }

    fn delete(&mut self, at: u64) -> Option<Act> {
        let which = (!self.made.is_empty()).then(|| self.rng.random_range(0..self.made.len()))?;
        let Made {
            cluster,
            ref name,
            form,
            zone,
        } = self.made[which];
        let (name, kind) = (name.clone(), self.forms[form].kind.to_owned());
        // Half of what is deleted comes back under the same name soon.
        if self.rng.random_bool(0.5) {
            let after = at + self.rng.random_range(1..90) * SECOND;
            let name = name.clone();
            self.create(
                after,
                Made {
                    cluster,
                    name,
                    form,
                    zone,
                },
            );
        }
        Some(Act::Delete {
            cluster,
            target: Target { kind, name },
        })
    }

    /// What somebody else does in the entry point of a form.
    fn foreign_edit(&mut self, form: usize) -> RuleEdit {
        let before = if self.rng.random_bool(0.7) {
            Some(self.rng.random_range(0..6))
        } else {
            None
        };
        let pick = self.rng.random_range(0..12);
        match self.rng.random_range(0..12) {
            0..=3 => {
                let zone = DOMAINS[0];
                let spec = self.spec(form, zone);
                let mut body = self.forms[form].body(&spec);
                // Lists stay free to be deleted.
                body["expression"] = json!("ip.src eq 198.51.100.1");
                RuleEdit::Add { body, before }
            }
            4..=6 => RuleEdit::Move { pick, before },
            7 | 8 => RuleEdit::Change {
                pick,
                body: json!({ "description": format!("theirs {}", pick % 3) }),
            },
            9 => RuleEdit::Change {
                pick,
                body: json!({ "enabled": false, "expression": "ip.src eq 198.51.100.2" }),
            },
            10 => RuleEdit::Delete { pick },
            _ if self.rng.random_bool(0.3) => RuleEdit::DeleteAll,
            _ => RuleEdit::Delete { pick },
        }
    }

    fn fault(&mut self) -> FaultSpec {
        const RULES: &str = "/zones/{zone_id}/rulesets/{ruleset_id}/rules";
        const ENTRY_POINT: &str = "/zones/{zone_id}/rulesets/phases/{ruleset_phase}/entrypoint";
        let matches = match self.rng.random_range(0..4) {
            0 => FaultMatch::route("POST", "/zones/{zone_id}/rulesets"),
            1 => FaultMatch::route("POST", RULES),
            2 => FaultMatch::route("PATCH", &format!("{RULES}/{{rule_id}}")),
            _ => FaultMatch::route("GET", ENTRY_POINT),
        };
        let dropped = Some(Dropped::Reset);
        let fault = match self.rng.random_range(0..4) {
            0 => Fault::DropBefore { dropped },
            1 => Fault::Status {
                status: 503,
                code: 10_001,
                message: "Service unavailable".to_owned(),
            },
            _ => Fault::DropAfter { dropped },
        };
        FaultSpec::new(matches, fault).times(self.rng.random_range(1..4))
    }
}

/// A change of what every rule says.
fn plain(rng: &mut StdRng) -> Value {
    match rng.random_range(0..4) {
        0 | 1 => json!({ "priority": rng.random_range(-1..4) }),
        2 => json!({ "description": format!("ours {}", rng.random_range(0..3)) }),
        _ => json!({ "enabled": rng.random_bool(0.7) }),
    }
}

fn expression(rng: &mut StdRng, lists: &[String]) -> String {
    match lists.choose(rng) {
        Some(list) if rng.random_bool(0.4) => format!("ip.src in ${list}"),
        // What no Cloudflare, or only a Business zone, takes is rare.
        _ if rng.random_bool(0.9) => EXPRESSIONS[rng.random_range(0..2)].to_owned(),
        _ => EXPRESSIONS[rng.random_range(2..4)].to_owned(),
    }
}
