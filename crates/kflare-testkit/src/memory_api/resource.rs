//! The kinds a [`MemoryApi`](super::MemoryApi) serves.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::ClusterResourceScope;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::core::discovery::Scope;
use kube::core::response::StatusCause;
use serde_json::Value;

/// What is about to be stored, as an [`Admission`] hook sees it.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// A new object.
    Create,
    /// A change of this object, through the main endpoint or `/status`.
    Update(&'a Value),
}

/// Sets defaults on an object about to be stored, and refuses it (422 `Invalid`) by naming causes: the place of a CRD's
/// schema and CEL rules.
pub type Admission = Arc<dyn Fn(Operation<'_>, &mut Value) -> Result<(), Vec<StatusCause>> + Send + Sync>;

/// Whether the API server counts generations of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generations {
    Counted,
    Absent,
}

/// Whether a kind has the `/status` subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusEndpoint {
    Served,
    Absent,
}

/// A kind and how the API server treats it.
#[derive(Clone)]
pub struct ResourceType {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) plural: String,
    pub(super) scope: Scope,
    pub(super) generations: Generations,
    pub(super) status: StatusEndpoint,
    pub(super) admission: Option<Admission>,
}

impl ResourceType {
    /// A custom resource: generations are counted, `/status` is served.
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        plural: impl Into<String>,
        kind: impl Into<String>,
        scope: Scope,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            scope,
            generations: Generations::Counted,
            status: StatusEndpoint::Served,
            admission: None,
        }
    }

    /// A custom resource as its definition describes it: names, scope, the storage version and whether that has
    /// `/status`. The schema is not enforced: see [`ResourceType::with_admission`].
    pub fn from_crd(crd: &CustomResourceDefinition) -> Self {
        let spec = &crd.spec;
        let scope = if spec.scope == "Cluster" {
            Scope::Cluster
        } else {
            Scope::Namespaced
        };
        let version = spec.versions.iter().find(|version| version.storage);
        let name = version.map(|version| version.name.clone()).unwrap_or_default();
        let mut resource = Self::new(&spec.group, name, &spec.names.plural, &spec.names.kind, scope);
        let subresources = version.and_then(|version| version.subresources.as_ref());
        if subresources
            .and_then(|subresources| subresources.status.as_ref())
            .is_none()
        {
            resource.status = StatusEndpoint::Absent;
        }
        resource
    }

    /// A built-in kind without generations and `/status`, such as Secret, ConfigMap, Lease or Event.
    pub fn builtin<K>() -> Self
    where
        K: Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        let cluster = TypeId::of::<K::Scope>() == TypeId::of::<ClusterResourceScope>();
        let scope = if cluster { Scope::Cluster } else { Scope::Namespaced };
        let mut resource = Self::new(K::group(&()), K::version(&()), K::plural(&()), K::kind(&()), scope);
        resource.generations = Generations::Absent;
        resource.status = StatusEndpoint::Absent;
        resource
    }

    /// Runs a hook before every create and update.
    #[must_use]
    pub fn with_admission(
        mut self,
        admission: impl Fn(Operation<'_>, &mut Value) -> Result<(), Vec<StatusCause>> + Send + Sync + 'static,
    ) -> Self {
        self.admission = Some(Arc::new(admission));
        self
    }

    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `plural.group`, or the plural alone in the core group: how Kubernetes names it in messages.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

impl fmt::Debug for ResourceType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "ResourceType({} {}, {:?})",
            self.api_version(),
            self.kind,
            self.scope
        )
    }
}

/// Names one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// A namespaced object.
    pub fn namespaced<K: Resource<DynamicType = ()>>(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// A cluster-scoped object.
    pub fn cluster<K: Resource<DynamicType = ()>>(name: impl Into<String>) -> Self {
        Self {
            group: K::group(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            namespace: None,
            name: name.into(),
        }
    }

    /// The object a manifest describes, by its `apiVersion`, `kind` and metadata.
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let api_version = text("/apiVersion").unwrap_or_default();
        Self {
            group: api_version
                .rsplit_once('/')
                .map(|(group, _)| group.to_owned())
                .unwrap_or_default(),
            kind: text("/kind").unwrap_or_default(),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name").unwrap_or_default(),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.kind)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        write!(formatter, " ")?;
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        write!(formatter, "{}", self.name)
    }
}
