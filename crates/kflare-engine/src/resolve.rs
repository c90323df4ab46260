//! From a resource to everything its adapter needs: policy, credential source, parents, container, desired state. Pure; the
//! store is all it looks at, so passes, drift sweeps and `kflare plan` prepare in the same way.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    annotations,
    index::{CollectionKey, Index},
    kind::{CredentialSource, Desired, KindDescriptor, Lifecycle, Parent, Parents, ReferenceName, SpecError},
    kinds::Kinds,
    object::{Object, ObjectKey},
    plan::Plan,
    policy::{DefaultDeletion, DriftCheck, Policy, policy_of},
    reason::Reason,
};

/// Defaults of the operator that policies fall back on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// `--default-deletion-policy`.
    pub deletion: DefaultDeletion,
    /// `--drift-check-interval`.
    pub drift_check: DriftCheck,
}

/// Whether a parent that has no remote object yet stops its dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentRule {
    /// It does.
    MustExist,
    /// In a plan it does not: the dependent is planned as if the parent were there.
    MayBePlanned,
}

/// A resource, ready to be observed and decided about.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The resource that carries the credential.
    pub account: ObjectKey,
    /// Where its credential is.
    pub source: CredentialSource,
    /// The container.
    pub scope: String,
    /// What it refers to.
    pub parents: Parents,
    /// What the spec asks for.
    pub desired: Desired,
    /// What the user allows.
    pub policy: Policy,
    /// The collection it is observed in.
    pub collection: CollectionKey,
    /// What the user asks for that has no effect, a sentence each.
    pub notes: Vec<String>,
    /// Fingerprint of the Secrets and ConfigMaps whose values are in `desired`, once they are.
    pub inputs: Option<String>,
}

/// Prepares `object`, or says as a plan what it waits for or what is wrong with it.
pub fn prepare(
    index: &Index,
    kinds: &Kinds,
    object: &Object,
    defaults: Defaults,
    parent_rule: ParentRule,
) -> Result<Prepared, Plan> {
    let Some(kind) = kinds.get(&object.key.kind) else {
        return Err(wait(
            Reason::INVALID_SPEC,
            format!("{} is not a kind of this kflare", object.key.kind),
        ));
    };
    let spec = object.spec.value();
    let references = kind.references(&spec).map_err(|error| invalid(&error))?;
    let namespace = object.key.namespace.as_deref();
    let mut by_field = BTreeMap::new();
    for reference in references {
        let key = match &reference.name {
            ReferenceName::Resource(name) => kinds.referent(reference.kind, namespace, name),
            ReferenceName::Alias(alias) => match index.aliased(reference.kind, alias, &object.key) {
                Some(key) => key,
                None => continue,
            },
        };
        let parent = resolve(index, kinds, &key, object, parent_rule)?;
        by_field.insert(reference.field, parent);
    }
    let account = index.account_of(&object.key).map_err(|missing| match missing {
        Some(key) => missing_parent(kinds, &key, parent_rule),
        None => wait(
            Reason::INVALID_SPEC,
            "spec names no account, neither directly nor through its references".to_owned(),
        ),
    })?;
    let source = match index.credential(&account) {
        Some(Ok(source)) => source,
        Some(Err(error)) if account == object.key => return Err(invalid(&error)),
        _ => return Err(unready_parent(kinds, &account, "its spec is not valid")),
    };
    allowed(index, &source, object, &account)?;
    let policy = policy_of(
        object,
        source.default_deletion.as_deref(),
        defaults.deletion,
        defaults.drift_check,
    )
    .map_err(|error| invalid(&error))?;
    one_of_its_kind(index, kind.descriptor(), object)?;
    let parents = Parents {
        of: object.key.clone(),
        account_id: source.account_id.clone(),
        by_field,
    };
    let scope = kind.scope(&spec, &parents).map_err(|error| invalid(&error))?;
    let desired = kind.desired(&spec, &parents).map_err(|error| invalid(&error))?;
    let notes = desired
        .notes
        .iter()
        .cloned()
        .chain(annotations::without_effect(object))
        .collect();
    let collection = CollectionKey {
        account: account.name.clone(),
        collection: kind.descriptor().collection.as_ref().into(),
        scope: scope.as_str().into(),
    };
    Ok(Prepared {
        account,
        source,
        scope,
        parents,
        desired,
        policy,
        collection,
        notes,
        inputs: None,
    })
}

fn resolve(index: &Index, kinds: &Kinds, key: &ObjectKey, child: &Object, rule: ParentRule) -> Result<Parent, Plan> {
    let (Some(parent), Some(kind)) = (index.get(key), kinds.get(&key.kind)) else {
        return Err(missing_parent(kinds, key, rule));
    };
    let descriptor = kind.descriptor();
    let recorded = parent.recorded(descriptor.id_field());
    let child_exists = child.ready().status == "True";
    let id = match descriptor.lifecycle {
        // A credential has to work. A resource that has worked goes on while its account waits to go: somebody may have deleted the
        // account by mistake.
        Lifecycle::Verified if parent.is_ready() || rule == ParentRule::MayBePlanned => String::new(),
        Lifecycle::Verified if parent.deleting && child_exists => String::new(),
        Lifecycle::Verified => return Err(not_ready(kinds, &parent)),
        Lifecycle::Managed => match (recorded.id, rule) {
            (Some(id), _) => id,
            (None, ParentRule::MayBePlanned) => String::new(),
            (None, ParentRule::MustExist) => return Err(not_ready(kinds, &parent)),
        },
    };
    if parent.deleting && !child_exists {
        return Err(unready_parent(kinds, key, "it is being deleted"));
    }
    Ok(Parent {
        key: key.clone(),
        id,
        spec: parent.spec.clone(),
        metadata: parent.cloudflare_metadata().into(),
    })
}

/// Where a container has one object of a kind, the resource has to be the one that holds it.
fn one_of_its_kind(index: &Index, descriptor: &KindDescriptor, object: &Object) -> Result<(), Plan> {
    if !descriptor.nature.singleton {
        return Ok(());
    }
    match index.singleton_holder(&object.key) {
        Some(holder) if holder != object.key => Err(Plan::Blocked {
            reason: descriptor.reasons.claimed.clone(),
            message: format!("there is only one, and {holder} manages it; delete one of the two resources"),
            changes: Vec::new(),
        }),
        _ => Ok(()),
    }
}

fn noun(kinds: &Kinds, key: &ObjectKey) -> String {
    kinds
        .get(&key.kind)
        .map_or_else(|| key.kind.to_string(), |kind| kind.descriptor().noun.to_string())
}

fn missing_parent(kinds: &Kinds, key: &ObjectKey, rule: ParentRule) -> Plan {
    let message = match rule {
        ParentRule::MustExist => format!("{key} does not exist"),
        ParentRule::MayBePlanned => format!("{key} is not among the manifests"),
    };
    wait(Reason::parent_not_found(&noun(kinds, key)), message)
}

fn unready_parent(kinds: &Kinds, key: &ObjectKey, why: &str) -> Plan {
    wait(
        Reason::parent_not_ready(&noun(kinds, key)),
        format!("{key} is not ready: {why}"),
    )
}

fn not_ready(kinds: &Kinds, parent: &Object) -> Plan {
    let ready = parent.ready();
    let why = if ready.reason.is_empty() {
        "it has not been reconciled yet".to_owned()
    } else {
        ready.reason
    };
    unready_parent(kinds, &parent.key, &why)
}

fn allowed(index: &Index, source: &CredentialSource, object: &Object, account: &ObjectKey) -> Result<(), Plan> {
    let (Some(selector), Some(namespace)) = (&source.allowed_namespaces, object.key.namespace.as_deref()) else {
        return Ok(());
    };
    // A namespace that is not known (yet, or because it may not be read) is not allowed: doubt never writes.
    if index
        .namespace_labels(namespace)
        .is_some_and(|labels| selector.matches(labels))
    {
        return Ok(());
    }
    Err(wait(
        Reason::NAMESPACE_NOT_ALLOWED,
        format!("{account} does not allow namespace {namespace}: its labels do not match spec.allowedNamespaces"),
    ))
}

fn wait(reason: Reason, message: String) -> Plan {
    Plan::Wait { reason, message }
}

fn invalid(error: &SpecError) -> Plan {
    Plan::Blocked {
        reason: Reason::INVALID_SPEC,
        message: error.to_string(),
        changes: Vec::new(),
    }
}

/// The status of `object` with `id` recorded, as a plan run needs it for the dependents of an object found by name.
pub fn with_recorded(
    object: &Object,
    id_field: &str,
    id: &str,
    scope: &str,
    metadata: &serde_json::Map<String, Value>,
) -> Object {
    let mut object = object.clone();
    let mut metadata = metadata.clone();
    metadata.insert(id_field.to_owned(), Value::String(id.to_owned()));
    let mut status = object.status.fields();
    status.insert("cloudflareMetadata".to_owned(), Value::Object(metadata));
    let ownership = status.entry("ownership").or_insert_with(|| json!({}));
    ownership["scope"] = json!(scope);
    object.status = status.into();
    object
}

/// The status of `object` with nothing recorded, as a plan run needs it for the dependents of an object that is gone.
pub fn without_recorded(object: &Object) -> Object {
    let mut object = object.clone();
    let mut status = object.status.fields();
    status.remove("cloudflareMetadata");
    object.status = status.into();
    object
}
