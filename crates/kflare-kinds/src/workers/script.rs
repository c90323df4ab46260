//! `WorkerScript`: a Worker. Its code and the values of its secrets cannot be read back: they are compared by a keyed hash together
//! with Cloudflare's time of the last change.

use async_trait::async_trait;
use kflare_api::{names, worker_script::WorkerScriptSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::workers::{self, Script, Settings, Subdomain},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, Input, Inputs, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference,
    Remote, Site, SpecError, Stored, errors::Class, kind::ClaimNames, plan::FieldRules,
};
use serde_json::{Value, json};

use super::{
    bindings,
    content::{self, CONTENT, Content},
    migrations, present,
    settings::{self, SCHEDULES, UNLISTED, WORKERS_DEV},
};
use crate::reasons;

/// There is no such Worker.
const MISSING: i64 = 10_007;
/// Other Workers call it.
const CALLED: i64 = 10_142;
/// It reads from a queue.
const CONSUMES: i64 = 10_064;
/// The account holds as many Workers as it may. The code is unproven.
const TOO_MANY: i64 = 10_037;
/// The account holds as many schedules as it may. The code is unproven.
const TOO_MANY_SCHEDULES: i64 = 10_072;
/// The migrations do not go on from where the Worker is.
const MIGRATED_OTHERWISE: i64 = 10_079;
/// What a binding names does not exist: KV namespace, R2 bucket, D1 database, queue, service, Hyperdrive, Vectorize index, Durable
/// Object class, VPC service, Secrets Store, dispatch namespace, certificate.
const UNBOUND: [i64; 12] = [
    10_041, 10_085, 10_181, 11_000, 10_144, 10_157, 10_159, 10_061, 10_180, 10_182, 100_119, 100_143,
];

/// The adapter.
pub struct ScriptAdapter {
    descriptor: KindDescriptor,
}

impl ScriptAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "scriptID".into(),
                    label: names::WORKER_ID.into(),
                }),
                fields: FieldRules {
                    after_create: &[SCHEDULES, WORKERS_DEV],
                    // Of a Worker that has never been migrated there is none.
                    untold: &[migrations::TAG],
                    unlisted: &UNLISTED,
                    write_only: &[CONTENT],
                    secret: &[CONTENT],
                    unmarked: &[SCHEDULES, WORKERS_DEV],
                    filled: &["observability"],
                    ..FieldRules::default()
                },
                ..KindDescriptor::new("WorkerScript", "workerscripts", "WorkerScript", "worker_scripts")
            },
        }
    }
}

fn key(name: &str) -> NaturalKey {
    NaturalKey {
        group: name.to_owned(),
        member: String::new(),
    }
}

/// A Worker as lists show it. Its id is the one that Cloudflare gives no other Worker, not even a later one of the same name.
fn listed(script: Script) -> Remote {
    let metadata = json!({
        "scriptID": script.tag,
        "scriptName": script.id,
        "etag": script.etag,
        "modifiedOn": script.modified_on,
    });
    Remote {
        key: key(&script.id),
        created: script.created_on.as_deref().and_then(|at| at.parse().ok()),
        revision: script
            .modified_on
            .as_ref()
            .map(|at| format!("{at} {}", script.etag.as_deref().unwrap_or_default())),
        metadata: present(metadata),
        body: present(json!({ migrations::TAG: script.migration_tag })),
        id: script.tag.unwrap_or(script.id),
        ..Remote::default()
    }
}

/// A Worker with all that can be read of it.
async fn whole(client: &Client, account_id: &str, script: Script) -> Result<Remote, Error> {
    let name = script.id.clone();
    let current = workers::settings(client, account_id, &name).await?;
    let crons = workers::schedules(client, account_id, &name).await?;
    let subdomain = workers::subdomain(client, account_id, &name).await?;
    let mut remote = listed(script);
    remote.body.extend(settings::remote(&current));
    remote.body.extend(bindings::remote(current.bindings));
    remote.body.insert(SCHEDULES.to_owned(), settings::crons(&crons));
    remote.body.insert(WORKERS_DEV.to_owned(), json!(subdomain.enabled));
    Ok(remote)
}

/// The Worker that `wanted` picks.
async fn find_script(
    client: &Client,
    account_id: &str,
    wanted: impl Fn(&Script) -> bool,
) -> Result<Option<Script>, Error> {
    Ok(workers::list(client, account_id)
        .await?
        .into_iter()
        .find(|script| wanted(script)))
}

/// What the Worker of that name is configured with; none where there is no such Worker.
async fn current(client: &Client, account_id: &str, name: &str) -> Result<Option<Settings>, Error> {
    match workers::settings(client, account_id, name).await {
        Ok(settings) => Ok(Some(settings)),
        Err(error) if error.has_code(MISSING) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn upload(
    client: &Client,
    account_id: &str,
    desired: &Desired,
    current: Option<&Settings>,
    migrated: Option<&str>,
) -> Result<Script, Error> {
    let content = Content::of(desired).ok_or_else(|| Error::Refused("the code was not read".to_owned()))?;
    let metadata = settings::metadata(&desired.body, &content, current, migrated);
    let modules = content.modules(desired);
    workers::upload(client, account_id, &desired.key.group, &metadata, &modules).await
}

#[async_trait]
impl Adapter for ScriptAdapter {
    type Spec = WorkerScriptSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &WorkerScriptSpec) -> Vec<Reference> {
        let account = Reference::new("accountRef", "CloudflareAccount", &spec.account_ref.name);
        std::iter::once(account).chain(bindings::references(spec)).collect()
    }

    fn scope(&self, _spec: &WorkerScriptSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &WorkerScriptSpec, parents: &Parents) -> Result<Desired, SpecError> {
        settings::check_schedules(spec)?;
        let mut body = settings::desired(spec);
        body.extend(bindings::desired(spec, parents));
        body.insert(CONTENT.to_owned(), Value::Null);
        let mut desired = Desired {
            key: key(&spec.name),
            exclusive: true,
            body,
            ..Desired::default()
        };
        if content::inputs(spec).is_empty() {
            content::fill(spec, &mut desired, &Inputs::default())?;
        }
        Ok(desired)
    }

    fn inputs(&self, spec: &WorkerScriptSpec) -> Vec<Input> {
        content::inputs(spec)
    }

    fn fill(&self, spec: &WorkerScriptSpec, desired: &mut Desired, inputs: &Inputs) -> Result<(), SpecError> {
        content::fill(spec, desired, inputs)
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        let scripts = workers::list(client, account_id).await?;
        Ok(scripts.into_iter().map(listed).collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let found = find_script(client, account_id, |script| script.id == key.group).await?;
        Ok(found.map(listed).into_iter().collect())
    }

    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        match find_script(client, account_id, |script| script.tag.as_deref() == Some(id)).await? {
            Some(script) => whole(client, account_id, script).await.map(Some),
            None => Ok(None),
        }
    }

    /// An upload replaces a Worker of that name without a question, so it is asked for first.
    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        if current(client, site.scope, &desired.key.group).await?.is_some() {
            return Err(Error::Refused(format!(
                "a Worker {} has appeared meanwhile",
                desired.key.group
            )));
        }
        let script = upload(client, site.scope, desired, None, None).await?;
        Ok(whole(client, site.scope, script).await?.into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error> {
        let (account_id, name) = (site.scope, &desired.key.group);
        let changes_field = |field: &str| changes.iter().any(|change| change.path == field);
        let needs_upload = changes
            .iter()
            .any(|change| ![SCHEDULES, WORKERS_DEV].contains(&change.path.as_str()));
        let mut script = None;
        if needs_upload {
            let current = workers::settings(client, account_id, name).await?;
            let mut migrated = None;
            if desired.body.contains_key(migrations::TAG) {
                let found = find_script(client, account_id, |script| script.tag.as_deref() == Some(id)).await?;
                migrated = found.and_then(|script| script.migration_tag);
            }
            let uploaded = upload(client, account_id, desired, Some(&current), migrated.as_deref());
            script = Some(uploaded.await?);
        }
        if let Some(Value::Array(crons)) = desired.body.get(SCHEDULES).filter(|_| changes_field(SCHEDULES)) {
            let crons: Vec<String> = crons.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            workers::set_schedules(client, account_id, name, &crons).await?;
        }
        if let Some(Value::Bool(enabled)) = desired.body.get(WORKERS_DEV).filter(|_| changes_field(WORKERS_DEV)) {
            let subdomain = Subdomain {
                enabled: *enabled,
                previews_enabled: *enabled,
            };
            workers::set_subdomain(client, account_id, name, subdomain).await?;
        }
        let script = match script {
            Some(script) => Some(script),
            None => find_script(client, account_id, |script| script.tag.as_deref() == Some(id)).await?,
        };
        match script {
            Some(script) => Ok(whole(client, account_id, script).await?.into()),
            None => Err(Error::Refused(format!("the Worker {name} has gone meanwhile"))),
        }
    }

    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        let found = find_script(client, site.scope, |script| script.tag.as_deref() == Some(id)).await?;
        if let Some(script) = found {
            match workers::delete(client, site.scope, &script.id).await {
                Err(error) if !error.has_code(MISSING) => return Err(error),
                _ => {}
            }
        }
        Ok(Deleted::default())
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        if UNBOUND.iter().any(|code| error.has_code(*code)) {
            return Some(Class::Blocked(reasons::BINDING_NOT_FOUND));
        }
        if error.has_code(MIGRATED_OTHERWISE) {
            return Some(Class::Blocked(reasons::MIGRATION_TAG_UNKNOWN));
        }
        if error.has_code(CALLED) || error.has_code(CONSUMES) {
            return Some(Class::Blocked(Reason::IN_USE));
        }
        (error.has_code(TOO_MANY) || error.has_code(TOO_MANY_SCHEDULES)).then_some(Class::Quota)
    }
}
