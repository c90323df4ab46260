//! What the engine asks of a kind. [`Kind`] is the object-safe face that the engine works with: JSON values, ids and
//! plans. A kind with a Rust type implements [`crate::Adapter`] instead and is wrapped once; a kind that is only data
//! can implement [`Kind`] directly.

use std::{borrow::Cow, collections::BTreeMap, num::NonZeroUsize};

use async_trait::async_trait;
use jiff::Timestamp;
use kflare_cloudflare::{Client, Error};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::{
    compact::Json,
    errors::Class,
    inputs::{Input, Inputs},
    object::{ObjectKey, SecretKey},
    operations::OperationWriter,
    plan::{Change, FieldRules},
    reason::Reason,
    yields::Yield,
};

/// Where resources of a kind live in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceScope {
    /// In no namespace.
    Cluster,
    /// In a namespace.
    Namespaced,
}

/// What the engine may do with the remote object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifecycle {
    /// It is created, adopted, updated and deleted.
    Managed,
    /// It is only checked: it is there or it is not (an account and its token).
    Verified,
}

/// How the remote id is recorded and claimed.
#[derive(Clone, Debug)]
pub struct ClaimNames {
    /// Field of `status.cloudflareMetadata` that holds the id.
    pub status_field: Cow<'static, str>,
    /// Label that shows the claim to other programs.
    pub label: Cow<'static, str>,
}

/// What conditions say where a kind has a word of its own for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindReasons {
    /// An object of that identity exists and the user has not asked to adopt it.
    pub exists: Reason,
    /// Another resource manages the object.
    pub claimed: Reason,
    /// The object must not be touched.
    pub locked: Reason,
    /// Being deleted, and others depend on it.
    pub in_use: Reason,
}

impl Default for KindReasons {
    fn default() -> Self {
        Self {
            exists: Reason::ALREADY_EXISTS,
            claimed: Reason::ALREADY_CLAIMED,
            locked: Reason::READ_ONLY,
            in_use: Reason::IN_USE,
        }
    }
}

/// How the objects of a kind exist at Cloudflare, where that is not the usual way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nature {
    /// Their order in the collection means something: those of ours stand in the order of [`Kind::rank`], others keep their
    /// place. The collection is one document, so its edits are made one after the other.
    pub ordered: bool,
    /// There is one in a container at most, and it is the container's: of several resources the oldest has it. The first
    /// reference of the spec names the container.
    pub singleton: bool,
    /// The natural key is made from the resource's own name, so that nobody else makes an object with it.
    pub key_is_ours: bool,
}

/// Static facts about a kind.
#[derive(Clone, Debug)]
pub struct KindDescriptor {
    /// CamelCase kind.
    pub kind: Cow<'static, str>,
    /// Plural, as in the API path.
    pub plural: Cow<'static, str>,
    /// Cluster-scoped or namespaced.
    pub resource_scope: ResourceScope,
    /// What reasons of dependents call it: `Zone` gives `ZoneNotFound` and `ZoneNotReady`.
    pub noun: Cow<'static, str>,
    /// What the engine may do with the remote object.
    pub lifecycle: Lifecycle,
    /// How the id is recorded and claimed; none for kinds that are only verified.
    pub claim: Option<ClaimNames>,
    /// Name of the remote collection. Kinds that share one (the rules of an entry point) share its listings.
    pub collection: Cow<'static, str>,
    /// The collection can be listed as a whole.
    pub listable: bool,
    /// Resources of this kind carry the credential that others use.
    pub provides_credential: bool,
    /// Fields that need more than plain comparison.
    pub fields: FieldRules,
    /// How its objects exist, where that is not the usual way.
    pub nature: Nature,
    /// Reasons with a name of the kind's own.
    pub reasons: KindReasons,
}

impl KindDescriptor {
    /// A namespaced, managed kind whose collection can be listed and whose fields are plain.
    pub fn new(kind: &'static str, plural: &'static str, noun: &'static str, collection: &'static str) -> Self {
        Self {
            kind: kind.into(),
            plural: plural.into(),
            resource_scope: ResourceScope::Namespaced,
            noun: noun.into(),
            lifecycle: Lifecycle::Managed,
            claim: None,
            collection: collection.into(),
            listable: true,
            provides_credential: false,
            fields: FieldRules::default(),
            nature: Nature::default(),
            reasons: KindReasons::default(),
        }
    }

    /// Whether a list is taken however few resources share the collection: it is one document, or a look at a single object reads
    /// what lists leave out, which is needed only when something has changed.
    pub fn lists_for_few(&self) -> bool {
        self.nature.ordered || !self.fields.unlisted.is_empty()
    }

    /// The status field that holds the remote id.
    pub fn id_field(&self) -> Option<&str> {
        self.claim.as_ref().map(|claim| claim.status_field.as_ref())
    }
}

/// A reference from a spec to another resource of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Field of the spec, for messages and for lookup by the adapter (`zoneRef`). Unique within the spec.
    pub field: Cow<'static, str>,
    /// CamelCase kind of the referent.
    pub kind: &'static str,
    /// What names it.
    pub name: ReferenceName,
}

/// How a reference names its referent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReferenceName {
    /// By the resource's name, in the same namespace (or cluster-scoped). It has to exist.
    Resource(String),
    /// By what its object is called at Cloudflare ([`Kind::alias`]), in the same account and any namespace. If no resource
    /// manages such an object there is nothing to wait for: somebody else may have made it.
    Alias(String),
}

impl Reference {
    /// To a resource by its name.
    pub fn new(field: impl Into<Cow<'static, str>>, kind: &'static str, name: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            kind,
            name: ReferenceName::Resource(name.into()),
        }
    }

    /// To whichever resource manages the object of that name at Cloudflare, if one does.
    pub fn by_alias(field: impl Into<Cow<'static, str>>, kind: &'static str, alias: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            kind,
            name: ReferenceName::Alias(alias.into()),
        }
    }
}

/// What an adapter may know of a resource it refers to.
#[derive(Clone, Debug)]
pub struct Parent {
    /// The referent.
    pub key: ObjectKey,
    /// Its remote id. Empty only in a plan, for a parent that does not exist yet.
    pub id: String,
    /// Its spec.
    pub spec: Json,
    /// Its `status.cloudflareMetadata`.
    pub metadata: Json,
}

/// Everything that a spec refers to, resolved.
#[derive(Clone, Debug)]
pub struct Parents {
    /// The resource whose references these are.
    pub of: ObjectKey,
    /// Cloudflare's account id.
    pub account_id: String,
    /// By field of the spec.
    pub by_field: BTreeMap<Cow<'static, str>, Parent>,
}

impl Parents {
    /// The referent of a field that [`Kind::references`] named.
    pub fn get(&self, field: &str) -> Option<&Parent> {
        self.by_field.get(field)
    }
}

/// Where a credential comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct CredentialSource {
    /// Cloudflare's account id.
    pub account_id: String,
    /// The Secret.
    pub secret: SecretKey,
    /// Key in it.
    pub key: String,
    /// Labels a namespace must carry for its resources to use this account; none means every namespace.
    pub allowed_namespaces: Option<LabelSelector>,
    /// `retain` or `delete` for resources of this account that say nothing themselves.
    pub default_deletion: Option<String>,
}

/// A label selector, as Kubernetes defines it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LabelSelector(pub k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector);

impl LabelSelector {
    /// Whether `labels` satisfy it. An empty selector matches everything; an unknown operator matches nothing.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let exact = self
            .0
            .match_labels
            .iter()
            .flatten()
            .all(|(key, value)| labels.get(key) == Some(value));
        exact
            && self.0.match_expressions.iter().flatten().all(|rule| {
                let values = rule.values.as_deref().unwrap_or_default();
                let found = labels.get(&rule.key);
                match rule.operator.as_str() {
                    "In" => found.is_some_and(|it| values.contains(it)),
                    "NotIn" => found.is_none_or(|it| !values.contains(it)),
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    _ => false,
                }
            })
    }
}

/// How objects that have no id yet are found and told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NaturalKey {
    /// Objects that could be meant by one resource share it (zone name; record type and name).
    pub group: String,
    /// Tells members of a set apart (record content). Empty where a group has at most one.
    pub member: String,
}

/// What the spec asks for, in canonical form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// Identity.
    pub key: NaturalKey,
    /// Cloudflare allows one object of this group, whatever its member.
    pub exclusive: bool,
    /// The fields that the spec manages, in Cloudflare's spelling.
    pub body: Map<String, Value>,
    /// What the spec asks for that has no effect, a sentence each: the condition says so.
    pub notes: Vec<String>,
    /// Bytes that belong to the body and are too many for it, by name. Not compared: the body holds a hash of them.
    pub attachments: BTreeMap<String, Vec<u8>>,
    /// Where the object is to be put, in collections whose order means something. Set by the engine at the moment of the
    /// write; none when it may stay where it is, or goes to the end.
    pub position: Option<Position>,
    /// What writes need to know beyond the body. Neither compared nor kept.
    pub payload: Value,
}

/// A place beside another object of the same collection, by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// Right before it.
    Before(String),
    /// Right after it.
    After(String),
}

/// What Cloudflare has, in canonical form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remote {
    /// Cloudflare's id.
    pub id: String,
    /// Identity.
    pub key: NaturalKey,
    /// Fields to compare.
    pub body: Map<String, Value>,
    /// When Cloudflare made it. None where Cloudflare does not say: see [`crate::intent::Intent::made`].
    pub created: Option<Timestamp>,
    /// Cloudflare's mark of its last change, where there is one that also covers what reads do not tell. Equal marks mean
    /// that nothing has changed.
    pub revision: Option<String>,
    /// Why it must not be touched, if so (managed by another product).
    pub locked: Option<String>,
    /// For `status.cloudflareMetadata`.
    pub metadata: Map<String, Value>,
    /// For `status` itself.
    pub status: Map<String, Value>,
}

/// A [`Remote`] that is kept: there are tens of thousands of them, and few are looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    id: Box<str>,
    group: Box<str>,
    member: Box<str>,
    body: Json,
    created: Option<Timestamp>,
    revision: Option<Box<str>>,
    locked: Option<Box<str>>,
    metadata: Json,
    status: Json,
}

impl Packed {
    /// Cloudflare's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Identity.
    pub fn key(&self) -> NaturalKey {
        NaturalKey {
            group: self.group.to_string(),
            member: self.member.to_string(),
        }
    }

    /// The object.
    pub fn remote(&self) -> Remote {
        Remote {
            id: self.id.to_string(),
            key: self.key(),
            body: self.body.fields(),
            created: self.created,
            revision: self.revision.as_deref().map(str::to_owned),
            locked: self.locked.as_deref().map(str::to_owned),
            metadata: self.metadata.fields(),
            status: self.status.fields(),
        }
    }
}

impl From<Remote> for Packed {
    fn from(remote: Remote) -> Self {
        Self {
            id: remote.id.into(),
            group: remote.key.group.into(),
            member: remote.key.member.into(),
            body: remote.body.into(),
            created: remote.created,
            revision: remote.revision.map(Into::into),
            locked: remote.locked.map(Into::into),
            metadata: remote.metadata.into(),
            status: remote.status.into(),
        }
    }
}

/// A spec that cannot be carried out. The message names the field and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", prefix(field))]
pub struct SpecError {
    /// Path of the field, such as `spec.ttl`; empty when the message names it.
    pub field: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

fn prefix(field: &str) -> String {
    if field.is_empty() {
        String::new()
    } else {
        format!("{field}: ")
    }
}

impl SpecError {
    /// An error at `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

/// One write to Cloudflare.
#[derive(Clone, Debug)]
pub enum Write {
    /// Create.
    Create {
        /// What.
        desired: Desired,
    },
    /// Change fields.
    Update {
        /// Cloudflare's id.
        id: String,
        /// What the spec asks for, whole.
        desired: Desired,
        /// The fields that differ.
        changes: Vec<Change>,
    },
    /// Delete.
    Delete {
        /// Cloudflare's id.
        id: String,
    },
}

/// All objects of a container.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The objects; where order means something, in that order.
    pub objects: Vec<Packed>,
    /// What edits of the container need to know beyond its id, such as the id of the document that holds the objects. Handed
    /// to writes as [`Site::handle`].
    pub handle: Option<String>,
}

impl From<Vec<Packed>> for Listing {
    fn from(objects: Vec<Packed>) -> Self {
        Self { objects, handle: None }
    }
}

impl FromIterator<Remote> for Listing {
    fn from_iter<I: IntoIterator<Item = Remote>>(objects: I) -> Self {
        objects.into_iter().map(Packed::from).collect::<Vec<_>>().into()
    }
}

/// Where a write goes.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The container.
    pub scope: &'a str,
    /// [`Listing::handle`] of the last listing. None when there was no listing, or none in it: the adapter has to find out.
    pub handle: Option<&'a str>,
}

/// An object that was created or changed.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The object, as Cloudflare has it now; fields that no read tells may be left out.
    pub remote: Remote,
    /// The whole collection after the write, where the answer holds it.
    pub listing: Option<Listing>,
}

impl From<Remote> for Stored {
    fn from(remote: Remote) -> Self {
        Self { remote, listing: None }
    }
}

/// A deletion that was carried out, or was not needed.
#[derive(Clone, Debug, Default)]
pub struct Deleted {
    /// The whole collection after the write, where the answer holds it.
    pub listing: Option<Listing>,
}

/// What came of a write.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "one a write, and mostly the large one")]
pub enum Written {
    /// Created or updated, as Cloudflare has it now.
    Stored(Stored),
    /// Deleted, or gone before.
    Deleted(Deleted),
}

/// Writes many objects of one scope in one call, all or nothing.
#[async_trait]
pub trait BatchWriter: Send + Sync {
    /// How many writes one call takes.
    fn limit(&self) -> NonZeroUsize;

    /// Sends one call. On success there is one outcome a write, in the order given.
    async fn write(&self, client: &Client, scope: &str, writes: &[Write]) -> Result<Vec<Written>, Error>;
}

/// A kind, erased.
#[async_trait]
pub trait Kind: Send + Sync {
    /// Static facts.
    fn descriptor(&self) -> &KindDescriptor;

    /// The resources that the spec names. A kind without references to follow returns none.
    fn references(&self, spec: &Value) -> Result<Vec<Reference>, SpecError>;

    /// The credential that this resource provides. Asked only where the descriptor says `provides_credential`.
    fn credential(&self, _spec: &Value) -> Result<Option<CredentialSource>, SpecError> {
        Ok(None)
    }

    /// The container (zone id, account id, or one of these and what else tells collections apart) the object lives in.
    fn scope(&self, spec: &Value, parents: &Parents) -> Result<String, SpecError>;

    /// Where the object stands among those of ours in the same collection: lower ranks first, equal ones by namespace and name.
    /// Asked only where the descriptor says `ordered`.
    fn rank(&self, _spec: &Value) -> i64 {
        0
    }

    /// What others call the object at Cloudflare, where they refer to it so: see [`ReferenceName::Alias`].
    fn alias(&self, _spec: &Value) -> Option<String> {
        None
    }

    /// What the spec asks for.
    fn desired(&self, spec: &Value, parents: &Parents) -> Result<Desired, SpecError>;

    /// The keys of Secrets and ConfigMaps that the spec reads. [`Kind::desired`] does without their values: the fields that
    /// depend on them are among [`FieldRules::write_only`] and hold anything, for instance null.
    fn inputs(&self, _spec: &Value) -> Result<Vec<Input>, SpecError> {
        Ok(Vec::new())
    }

    /// Puts the values of all [`Kind::inputs`] into what [`Kind::desired`] gave. Called before every write.
    fn fill(&self, _spec: &Value, _desired: &mut Desired, _inputs: &Inputs) -> Result<(), SpecError> {
        Ok(())
    }

    /// All objects of the scope. A listing that is not complete must be an error.
    async fn list(&self, client: &Client, scope: &str) -> Result<Listing, Error>;

    /// The objects in one place (see [`Kind::place`]), by a filtered query. At least those of the group of `key`.
    async fn find(&self, client: &Client, scope: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error>;

    /// What objects of that identity compete for: Cloudflare may refuse one because of another in the same place. Usually
    /// only those of their group.
    fn place(&self, key: &NaturalKey) -> String {
        key.group.clone()
    }

    /// One object; none when Cloudflare says that it does not exist.
    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error>;

    /// Creates an object.
    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error>;

    /// Changes fields of an object.
    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Stored, Error>;

    /// Deletes an object. An object that does not exist is a success.
    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error>;

    /// How to write many at once, where the API has it.
    fn batch(&self) -> Option<&dyn BatchWriter> {
        None
    }

    /// How objects are changed where Cloudflare carries changes out later; see [`crate::operations`].
    fn operations(&self) -> Option<&dyn OperationWriter> {
        None
    }

    /// The kind's own reading of an error, before the general one.
    fn classify(&self, _error: &Error) -> Option<Class> {
        None
    }

    /// What stands in the way of `desired`, after Cloudflare has refused it for that ([`Class::InTheWay`]): a few words for
    /// the condition, with the ids. May read.
    async fn obstacle(&self, _client: &Client, _scope: &str, _desired: &Desired) -> Option<String> {
        None
    }

    /// What deleting this object destroys beyond itself, for the Event. May read.
    async fn deletion_warning(&self, _client: &Client, _scope: &str, _id: &str) -> Option<String> {
        None
    }

    /// Whether resources of this kind yield a Secret: see [`crate::yields`].
    fn yields_secrets(&self) -> bool {
        false
    }

    /// The Secret that a resource yields.
    fn yields(&self, _spec: &Value) -> Result<Option<Yield>, SpecError> {
        Ok(None)
    }

    /// The value for the Secret. Reads.
    async fn yielded(&self, _client: &Client, _scope: &str, _id: &str) -> Result<SecretString, Error> {
        Err(Error::Refused(format!("a {} yields nothing", self.descriptor().kind)))
    }
}

/// The fields of `desired` named by `changes`, with nested changes sent as their whole top-level field.
pub fn changed_fields(desired: &Desired, changes: &[Change]) -> Map<String, Value> {
    let mut fields = Map::new();
    for change in changes {
        let top = change.path.split('.').next().unwrap_or(&change.path);
        if let Some(value) = desired.body.get(top) {
            fields.insert(top.to_owned(), value.clone());
        }
    }
    fields
}
