//! How rules are read and written. The container is a zone and a phase; its entry point is one document that all rules share,
//! read in one call, and every write answers with the whole of it.

use std::marker::PhantomData;

use async_trait::async_trait;
use kflare_api::names;
use kflare_cloudflare::{
    Client, Error, Incompleteness,
    endpoints::rulesets::{self, Rule, Ruleset},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored,
    errors::Class,
    kind::{ClaimNames, KindReasons, Nature},
    plan::POSITION,
};
use serde_json::{Map, Value};

use super::{RuleKind, expression, rule};

/// The name of an entry point that kflare makes. The dashboard calls its own so, too.
const NAME: &str = "default";

/// The entry point exists (it was made in this very moment).
const EXISTS: i64 = 20_217;

/// The plan has no more rules in this phase.
const FULL: i64 = 50_001;

/// The plan does not have the phase, or the feature.
const NOT_ENTITLED: i64 = 50_002;

/// The adapter of a rule kind.
pub struct RuleAdapter<K> {
    descriptor: KindDescriptor,
    kind: PhantomData<fn() -> K>,
}

impl<K: RuleKind> RuleAdapter<K> {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "ruleID".into(),
                    label: names::RULE_ID.into(),
                }),
                fields: rule::FIELDS,
                nature: Nature {
                    ordered: true,
                    key_is_ours: true,
                    ..Nature::default()
                },
                ..KindDescriptor::new(K::KIND, K::PLURAL, "Rule", "rules")
            },
            kind: PhantomData,
        }
    }

    /// With a word of its own for what stands in the way of a rule.
    #[must_use]
    pub fn with_conflicts(mut self, reason: Reason) -> Self {
        self.descriptor.reasons = KindReasons {
            exists: reason.clone(),
            claimed: reason.clone(),
            locked: reason,
            ..KindReasons::default()
        };
        self
    }
}

/// A container: the zone, and the phase.
struct Scope<'a> {
    zone: &'a str,
    phase: &'a str,
}

impl<'a> Scope<'a> {
    fn read(scope: &'a str) -> Self {
        let (zone, phase) = scope.split_once('/').unwrap_or((scope, ""));
        Self { zone, phase }
    }

    async fn entry_point(&self, client: &Client) -> Result<Option<Ruleset>, Error> {
        rulesets::entry_point(client, self.zone, self.phase).await
    }

    /// The id of the entry point: as last seen, else asked for.
    async fn ruleset(&self, client: &Client, site: Site<'_>) -> Result<Option<String>, Error> {
        match site.handle {
            Some(id) => Ok(Some(id.to_owned())),
            None => Ok(self.entry_point(client).await?.map(|it| it.id)),
        }
    }

    /// The entry point with a new rule in it. It is made when there is none; when somebody else makes it at the same time, the
    /// rule goes into that one.
    async fn add(&self, client: &Client, site: Site<'_>, body: Value) -> Result<Ruleset, Error> {
        let ruleset = match self.ruleset(client, site).await? {
            Some(ruleset) => ruleset,
            None => {
                match rulesets::create_ruleset(client, self.zone, self.phase, NAME, std::slice::from_ref(&body)).await {
                    Err(error) if error.has_code(EXISTS) => match self.entry_point(client).await? {
                        Some(ruleset) => ruleset.id,
                        None => return Err(error),
                    },
                    other => return other,
                }
            }
        };
        rulesets::add_rule(client, self.zone, &ruleset, &body).await
    }
}

/// The rule of an answer, with the whole entry point.
fn stored(ruleset: &Ruleset, is_it: impl Fn(&Rule) -> bool) -> Result<Stored, Error> {
    let found = ruleset.rules.iter().find(|rule| is_it(rule));
    let found = found.ok_or(Error::Incomplete {
        route: rulesets::ENTRY_POINT,
        reason: Incompleteness::Moving,
    })?;
    Ok(Stored {
        remote: rule::remote(ruleset, found),
        listing: Some(rule::listing(ruleset)),
    })
}

#[async_trait]
impl<K: RuleKind> Adapter for RuleAdapter<K> {
    type Spec = K::Spec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &K::Spec) -> Vec<Reference> {
        let expressions = std::iter::once(K::expression(spec)).chain(K::more_expressions(spec));
        let lists: std::collections::BTreeSet<String> = expressions.flat_map(expression::lists).collect();
        let lists = lists
            .into_iter()
            .map(|list| Reference::by_alias(format!("${list}"), "IPList", list));
        std::iter::once(Reference::new("zoneRef", "Zone", &K::base(spec).zone_ref.name))
            .chain(lists)
            .collect()
    }

    fn scope(&self, spec: &K::Spec, parents: &Parents) -> String {
        let zone = parents.get("zoneRef").map(|zone| zone.id.as_str()).unwrap_or_default();
        format!("{zone}/{}", K::phase(spec))
    }

    fn rank(&self, spec: &K::Spec) -> i64 {
        K::base(spec).priority.unwrap_or_default().into()
    }

    fn desired(&self, spec: &K::Spec, parents: &Parents) -> Result<Desired, SpecError> {
        let base = K::base(spec);
        let body = rule::body(
            &rule::mark(&parents.of),
            K::expression(spec),
            base.description.as_deref(),
            base.enabled,
            &K::action(spec),
        );
        Ok(Desired {
            key: rule::key(&body),
            // Of a managed ruleset a zone has one deployment; all others have their mark to themselves.
            exclusive: rule::executed(&body).is_some(),
            body,
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, scope: &str) -> Result<Listing, Error> {
        let ruleset = Scope::read(scope).entry_point(client).await?;
        Ok(ruleset.as_ref().map(rule::listing).unwrap_or_default())
    }

    async fn find(&self, client: &Client, scope: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let ruleset = Scope::read(scope).entry_point(client).await?;
        let rules = ruleset
            .iter()
            .flat_map(|ruleset| ruleset.rules.iter().map(|rule| rule::remote(ruleset, rule)));
        Ok(rules.filter(|remote| remote.key.group == key.group).collect())
    }

    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error> {
        let ruleset = Scope::read(scope).entry_point(client).await?;
        Ok(ruleset.and_then(|ruleset| {
            let found = ruleset.rules.iter().find(|rule| rule.id == id)?;
            Some(rule::remote(&ruleset, found))
        }))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let body = rule::request(desired);
        let ruleset = Scope::read(site.scope).add(client, site, body).await?;
        let mark = desired.body.get("ref").and_then(Value::as_str).unwrap_or_default();
        stored(&ruleset, |rule| rule.reference == mark)
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let scope = Scope::read(site.scope);
        let moved = desired.position.as_ref().map(rule::place);
        let only_moves = changes.iter().all(|change| change.path == POSITION);
        let body = match (moved, only_moves) {
            (Some(place), true) => Value::Object(Map::from_iter([place])),
            // Cloudflare takes whole rules only: what is left out is dropped.
            _ => rule::request(desired),
        };
        let ruleset = scope.ruleset(client, site).await?;
        let ruleset = ruleset.ok_or(Error::Incomplete {
            route: rulesets::ENTRY_POINT,
            reason: Incompleteness::Moving,
        })?;
        let ruleset = rulesets::patch_rule(client, scope.zone, &ruleset, id, &body).await?;
        stored(&ruleset, |rule| rule.id == id)
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        let scope = Scope::read(site.scope);
        let Some(ruleset) = scope.ruleset(client, site).await? else {
            return Ok(Deleted::default());
        };
        match rulesets::delete_rule(client, scope.zone, &ruleset, id).await {
            Ok(ruleset) => Ok(Deleted {
                listing: ruleset.as_ref().map(rule::listing),
            }),
            Err(error) if rulesets::is_not_found(&error) => Ok(Deleted::default()),
            Err(error) => Err(error),
        }
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let points_to = |field: &str| {
            let messages = error.deepest();
            let mut pointers = messages.iter().filter_map(|message| message.pointer.as_deref());
            pointers.any(|pointer| pointer.trim_start_matches('/').split('/').next() == Some(field))
        };
        if error.has_code(FULL) || error.has_code(NOT_ENTITLED) {
            Some(Class::Quota)
        } else if rulesets::is_not_found(error) {
            Some(Class::Missing)
        } else if points_to("ref") {
            Some(Class::Exists)
        } else if points_to(POSITION) || error.has_code(EXISTS) {
            // The rule beside which it was to stand has gone, or the entry point has come and gone: look again.
            Some(Class::Transient)
        } else if matches!(error.status(), Some(400 | 422)) {
            Some(Class::Invalid(Reason::INVALID_SPEC))
        } else {
            None
        }
    }

    async fn deletion_warning(&self, client: &Client, scope: &str, id: &str) -> Option<String> {
        let warning = K::LAST_ONE?;
        let ruleset = Scope::read(scope).entry_point(client).await.ok()??;
        match ruleset.rules.as_slice() {
            [last] if last.id == id => Some(warning.to_owned()),
            _ => None,
        }
    }
}
