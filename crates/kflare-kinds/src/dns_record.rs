//! `DNSRecord`: one record of a zone. What records mean is in [`crate::dns`]; here is how they are read and written.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use kflare_api::{dns_record::DNSRecordSpec, names};
use kflare_cloudflare::{
    Client, Error,
    endpoints::dns::{self as endpoint, Batch, Record, RecordId},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Packed, Parents, Reason, Reference, Remote,
    Site, SpecError, Stored,
    errors::Class,
    kind::{BatchWriter, ClaimNames, Write, Written, changed_fields},
    plan::FieldRules,
};
use serde_json::{Map, Value, json};

use crate::{
    dns::{self, Wanted},
    reasons,
};

/// Writes that one batch takes on every plan. Paid plans take 3,500; the plan of a zone is not known here.
const BATCH: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// An identical record exists (81057 is the older code).
const IDENTICAL: [i64; 2] = [81057, 81058];

/// A record of another type, or another CNAME, of that name stands in the way.
const CONFLICT: [i64; 4] = [81053, 81054, 81055, 81056];

/// The record does not exist.
const MISSING: i64 = 81044;

/// The zone's record quota is used up.
const QUOTA: i64 = 81045;

/// Members of `meta` that say that another product of Cloudflare's manages the record.
const MANAGED_BY: [&str; 6] = [
    "read_only",
    "managed_by_apps",
    "managed_by_argo_tunnel",
    "origin_worker_id",
    "r2_bucket",
    "email_routing",
];

/// How records are compared.
pub(crate) const FIELDS: FieldRules = FieldRules {
    immutable: &["type"],
    // An answer in bare text does not say how it is cut.
    untold: &[dns::STRINGS],
    ..FieldRules::PLAIN
};

/// How many records a message names.
const NAMED: usize = 3;

/// The longest value in a message, in characters.
const SHOWN: usize = 80;

/// The adapter.
pub struct RecordAdapter {
    descriptor: KindDescriptor,
}

impl RecordAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "recordID".into(),
                    label: names::RECORD_ID.into(),
                }),
                fields: FIELDS,
                ..KindDescriptor::new("DNSRecord", "dnsrecords", "Record", "dns_records")
            },
        }
    }
}

/// Type and name make a group; content or data tells its members apart.
fn key(body: &Map<String, Value>) -> NaturalKey {
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or_default();
    NaturalKey {
        group: format!("{} {}", text("type"), text("name")),
        member: dns::member(body),
    }
}

fn remote(zone_id: &str, record: &Record) -> Remote {
    let body = dns::canonical_remote(&json!({
        "name": record.name,
        "type": record.kind,
        "content": record.content,
        "data": record.data,
        "ttl": record.ttl,
        "proxied": record.proxied,
        "priority": record.priority,
        "comment": record.comment,
        "tags": record.tags,
        "settings": record.settings,
    }));
    let managed_by = MANAGED_BY.iter().find(|field| {
        record
            .meta
            .get(**field)
            .is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)) && value != "")
    });
    let metadata = json!({
        "recordID": record.id,
        "zoneID": zone_id,
        "name": record.name,
        "proxiable": record.proxiable,
    });
    Remote {
        id: record.id.clone(),
        key: key(&body),
        body,
        created: record.created_on,
        locked: managed_by.map(|field| format!("managed by another product of Cloudflare's ({field})")),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        ..Remote::default()
    }
}

fn create_body(desired: &Desired) -> Value {
    Value::Object(dns::request_body(desired.body.clone(), &desired.body, |_| false))
}

/// The fields to send for `changes`.
pub(crate) fn patch_body(desired: &Desired, changes: &[Change]) -> Map<String, Value> {
    let switched = |name: &str| {
        changes
            .iter()
            .any(|change| change.path.strip_prefix("settings.") == Some(name))
    };
    dns::request_body(changed_fields(desired, changes), &desired.body, switched)
}

/// Whether a record of type `there` keeps one of type `wanted` from standing beside it. As Cloudflare documents it: an alias
/// stands beside no address, alias or delegation of its name, and a delegation beside nothing else.
fn excludes(there: &str, wanted: &str) -> bool {
    match (wanted, there) {
        ("NS", there) => there != "NS",
        (_, "NS") => true,
        ("CNAME", there) => matches!(there, "A" | "AAAA" | "CNAME"),
        (_, there) => there == "CNAME",
    }
}

/// A record as a message names it: type, value and id.
fn named(zone_id: &str, record: &Record) -> String {
    let value = dns::content_text(&remote(zone_id, record).body);
    let value = if value.chars().count() > SHOWN {
        format!("{}…", value.chars().take(SHOWN - 1).collect::<String>())
    } else {
        value
    };
    format!("{} {value} ({})", record.kind, record.id)
}

#[async_trait]
impl Adapter for RecordAdapter {
    type Spec = DNSRecordSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &DNSRecordSpec) -> Vec<Reference> {
        let zone = Reference::new("zoneRef", "Zone", &spec.zone_ref.name);
        let tunnel = spec.tunnel_ref.as_ref();
        let tunnel = tunnel.map(|tunnel| Reference::new("tunnelRef", "Tunnel", &tunnel.name));
        std::iter::once(zone).chain(tunnel).collect()
    }

    fn scope(&self, _spec: &DNSRecordSpec, parents: &Parents) -> String {
        parents.get("zoneRef").map(|zone| zone.id.clone()).unwrap_or_default()
    }

    fn desired(&self, spec: &DNSRecordSpec, parents: &Parents) -> Result<Desired, SpecError> {
        let zone: Option<String> = parents.get("zoneRef").and_then(|zone| zone.spec.get(&["name"]));
        let zone = dns::zone_name(&zone.unwrap_or_default())
            .map_err(|error| SpecError::new("spec.zoneRef", format!("the zone's name is not usable: {error}")))?;
        let tunnel = parents.get("tunnelRef").map(|tunnel| tunnel.id.as_str());
        let wanted = Wanted::from_spec(spec, &zone, tunnel).map_err(|error| SpecError::new("", error.to_string()))?;
        let body = wanted.body();
        // Of CNAME records a name has one at most, whatever its target.
        let exclusive = wanted.record_type == dns::RecordType::Cname;
        let ignored = wanted.ignored_ttl();
        let note = |ttl| format!("spec.ttl {ttl} has no effect, because proxied records are always automatic");
        Ok(Desired {
            key: key(&body),
            exclusive,
            body,
            notes: ignored.map(note).into_iter().collect(),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, zone_id: &str) -> Result<Listing, Error> {
        let records = endpoint::list_into(client, zone_id, |record| Packed::from(remote(zone_id, &record)));
        Ok(records.await?.into())
    }

    async fn find(&self, client: &Client, zone_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let found = endpoint::find_by_name(client, zone_id, &self.place(key)).await?;
        Ok(found.iter().map(|record| remote(zone_id, record)).collect())
    }

    /// The name: a CNAME stands alone among addresses, NS records among all.
    fn place(&self, key: &NaturalKey) -> String {
        let name = key.group.split_once(' ').map_or(key.group.as_str(), |(_, name)| name);
        name.to_owned()
    }

    async fn get(&self, client: &Client, zone_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        match endpoint::get(client, zone_id, id).await {
            Ok(record) => Ok(Some(remote(zone_id, &record))),
            Err(error) if error.has_code(MISSING) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let record = endpoint::create(client, site.scope, &create_body(desired)).await?;
        Ok(remote(site.scope, &record).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let body = Value::Object(patch_body(desired, changes));
        let record = endpoint::patch(client, site.scope, id, &body).await?;
        Ok(remote(site.scope, &record).into())
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        match endpoint::delete(client, site.scope, id).await {
            Err(error) if !error.has_code(MISSING) => Err(error),
            _ => Ok(Deleted::default()),
        }
    }

    fn batch(&self) -> Option<&dyn BatchWriter> {
        Some(self)
    }

    async fn obstacle(&self, client: &Client, zone_id: &str, desired: &Desired) -> Option<String> {
        let text = |field: &str| desired.body.get(field).and_then(Value::as_str).unwrap_or_default();
        let found = endpoint::find_by_name(client, zone_id, text("name")).await.ok()?;
        let mut there: Vec<&Record> = found.iter().filter(|it| excludes(&it.kind, text("type"))).collect();
        // Below the apex a delegation stands alone, and at the apex it excludes nothing.
        if text("type") != "NS" && there.iter().any(|it| it.kind != "NS") {
            there.retain(|it| it.kind != "NS");
        }
        let mut names: Vec<String> = there.iter().take(NAMED).map(|it| named(zone_id, it)).collect();
        if there.len() > NAMED {
            names.push(format!("and {} more", there.len() - NAMED));
        }
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        let any = |codes: &[i64]| codes.iter().any(|code| error.has_code(*code));
        if any(&IDENTICAL) {
            Some(Class::Exists)
        } else if any(&CONFLICT) {
            Some(Class::InTheWay(reasons::RECORD_CONFLICT))
        } else if any(&[MISSING]) {
            Some(Class::Missing)
        } else if any(&[QUOTA]) {
            Some(Class::Quota)
        } else if matches!(error.status(), Some(400 | 422)) {
            Some(Class::Invalid(Reason::INVALID_SPEC))
        } else {
            None
        }
    }
}

#[async_trait]
impl BatchWriter for RecordAdapter {
    fn limit(&self) -> NonZeroUsize {
        BATCH
    }

    async fn write(&self, client: &Client, zone_id: &str, writes: &[Write]) -> Result<Vec<Written>, Error> {
        let mut batch = Batch::default();
        for write in writes {
            match write {
                Write::Create { desired } => batch.posts.push(create_body(desired)),
                Write::Update { id, desired, changes } => {
                    let mut patch = patch_body(desired, changes);
                    patch.insert("id".to_owned(), json!(id));
                    batch.patches.push(Value::Object(patch));
                }
                Write::Delete { id } => batch.deletes.push(RecordId { id: id.clone() }),
            }
        }
        let reply = endpoint::batch(client, zone_id, &batch).await?;
        let (mut patches, mut posts) = (reply.patches.iter(), reply.posts.iter());
        // The answer mirrors the four lists, each in the order sent.
        let written = writes.iter().filter_map(|write| match write {
            Write::Create { .. } => posts
                .next()
                .map(|record| Written::Stored(remote(zone_id, record).into())),
            Write::Update { .. } => patches
                .next()
                .map(|record| Written::Stored(remote(zone_id, record).into())),
            Write::Delete { .. } => Some(Written::Deleted(Deleted::default())),
        });
        Ok(written.collect())
    }
}
