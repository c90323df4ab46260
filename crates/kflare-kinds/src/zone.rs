//! `Zone`: a domain in an account. Plan and pause are touched only when the spec sets them.

use async_trait::async_trait;
use kflare_api::{names, zone::ZoneSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::zones::{self, ZoneEdit},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reference, Remote, Site,
    SpecError, Stored, errors::Class, kind::ClaimNames, plan::FieldRules,
};
use serde_json::{Value, json};

use crate::{dns::zone_name, json::present};

/// The zone exists, in this or another account that Cloudflare knows.
const EXISTS: i64 = 1061;

/// The adapter.
pub struct ZoneAdapter {
    descriptor: KindDescriptor,
}

impl ZoneAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "zoneID".into(),
                    label: names::ZONE_ID.into(),
                }),
                fields: FieldRules {
                    after_create: &["plan", "paused"],
                    ..FieldRules::default()
                },
                ..KindDescriptor::new("Zone", "zones", "Zone", "zones")
            },
        }
    }
}

fn key(name: &str) -> NaturalKey {
    NaturalKey {
        group: name.to_ascii_lowercase(),
        member: String::new(),
    }
}

fn plan_id(plan: &zones::Plan) -> Option<String> {
    plan.legacy_id.clone().or_else(|| plan.id.clone())
}

/// A zone in canonical form. A plan change that Cloudflare has scheduled counts as done: it comes by itself.
fn remote(zone: zones::Zone) -> Remote {
    let plan = zone.plan.as_ref().and_then(plan_id);
    let pending = zone
        .plan_pending
        .as_ref()
        .and_then(plan_id)
        .filter(|pending| Some(pending) != plan.as_ref());
    let body = json!({
        "name": zone.name.to_ascii_lowercase(),
        "type": zone.kind,
        "paused": zone.paused,
        "plan": pending.clone().or_else(|| plan.clone()),
    });
    let metadata = json!({
        "zoneID": zone.id,
        "nameServers": zone.name_servers,
        "plan": plan,
        "pendingPlan": pending,
        "status": zone.status,
    });
    Remote {
        key: key(&zone.name),
        id: zone.id,
        body: present(body),
        created: zone.created_on,
        metadata: present(metadata),
        ..Remote::default()
    }
}

#[async_trait]
impl Adapter for ZoneAdapter {
    type Spec = ZoneSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &ZoneSpec) -> Vec<Reference> {
        vec![Reference::new(
            "accountRef",
            "CloudflareAccount",
            &spec.account_ref.name,
        )]
    }

    fn scope(&self, _spec: &ZoneSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &ZoneSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        let name = zone_name(&spec.name).map_err(|error| SpecError::new("spec.name", error.to_string()))?;
        let body = json!({ "name": name, "type": spec.zone_type, "plan": spec.plan, "paused": spec.paused });
        Ok(Desired {
            key: key(&name),
            exclusive: true,
            body: present(body),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        Ok(zones::list(client, account_id).await?.into_iter().map(remote).collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        Ok(zones::find(client, account_id, &key.group)
            .await?
            .into_iter()
            .map(remote)
            .collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        match zones::get(client, id).await {
            Ok(zone) => Ok(Some(remote(zone))),
            // The answer for a zone that is gone is not told apart from other refusals by its code alone, and taking a zone
            // for gone would create it anew: the account's list has to say so too.
            Err(error) if matches!(error.status(), Some(400 | 404)) => Ok(zones::list(client, account_id)
                .await?
                .into_iter()
                .find(|zone| zone.id == id)
                .map(remote)),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let body = json!({
            "name": desired.body.get("name"),
            "type": desired.body.get("type"),
            "account": { "id": site.scope },
        });
        Ok(remote(zones::create(client, &body).await?).into())
    }

    async fn update(
        &self,
        client: &Client,
        _site: Site<'_>,
        id: &str,
        _desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        // Cloudflare takes one property a call.
        let mut zone = None;
        for change in changes {
            let edit = match (change.path.as_str(), &change.to) {
                ("paused", Value::Bool(paused)) => ZoneEdit::Paused(*paused),
                ("type", Value::String(kind)) => ZoneEdit::Type(kind.clone()),
                ("plan", Value::String(plan)) => ZoneEdit::Plan(plan.clone()),
                (path, _) => return Err(Error::Refused(format!("the {path} of a zone cannot be changed"))),
            };
            zone = Some(zones::edit(client, id, &edit).await?);
        }
        let zone = match zone {
            Some(zone) => zone,
            None => zones::get(client, id).await?,
        };
        Ok(remote(zone).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        match zones::delete(client, id).await {
            // Gone already, when the zone cannot be found in any way either.
            Err(error) if matches!(error.status(), Some(400 | 404)) => match self.get(client, site.scope, id).await? {
                None => Ok(Deleted::default()),
                Some(_) => Err(error),
            },
            other => other.map(|()| Deleted::default()),
        }
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        error.has_code(EXISTS).then_some(Class::Exists)
    }

    async fn deletion_warning(&self, client: &Client, _account_id: &str, id: &str) -> Option<String> {
        let left = kflare_cloudflare::endpoints::dns::list(client, id).await.ok()?.len();
        (left > 0).then(|| format!("the zone still holds {left} records that kflare does not manage; they go with it"))
    }
}
