//! What a request asks for.

use std::collections::BTreeMap;

use http::{Method, Uri};
use kube::core::Status;

use super::refusal;

/// What a request does, in the words RBAC uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads a collection, or a page of it.
    List,
    /// Follows the changes of a collection.
    Watch,
    /// Creates an object.
    Create,
    /// Replaces an object.
    Update,
    /// Changes an object.
    Patch,
    /// Deletes an object.
    Delete,
    /// Deletes a collection.
    DeleteCollection,
    /// Asks what the server serves (`/apis`, `/version` and so on).
    Discover,
}

impl Verb {
    /// Whether it can change something.
    pub fn writes(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Update | Self::Patch | Self::Delete | Self::DeleteCollection
        )
    }

    /// Its name in RBAC rules (`discover` is not one).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Discover => "discover",
        }
    }
}

/// The address of a collection or an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

/// A path of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `/version`
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/api/v1` and `/apis/G/V`
    Resources { group: String, version: String },
    /// Everything below.
    Resource(Target),
}

impl Route {
    /// Parses a path; `None` when nothing like it is ever served.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["version"] => return Some(Self::Version),
            ["api"] => return Some(Self::CoreVersions),
            ["apis"] => return Some(Self::Groups),
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        // `/namespaces/x/status` is about the namespace x; `/namespaces/x/secrets` is about the secrets in it.
        let (namespace, rest) = match rest {
            ["namespaces", name, plural, ..] if !matches!(*plural, "status" | "finalize") => {
                (Some((*name).to_owned()), &rest[2..])
            }
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [] => {
                return Some(Self::Resources {
                    group: group.to_owned(),
                    version: version.to_owned(),
                });
            }
            [plural] => (plural, None, None),
            [plural, name] => (plural, Some(name), None),
            [plural, name, subresource] => (plural, Some(name), Some(subresource)),
            _ => return None,
        };
        let owned = |segment: &&str| (*segment).to_owned();
        Some(Self::Resource(Target {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: owned(plural),
            namespace,
            name: name.map(owned),
            subresource: subresource.map(owned),
        }))
    }

    /// The verb of a request with this path.
    pub(super) fn verb(&self, method: &Method, query: &Query) -> Result<Verb, Box<Status>> {
        let Self::Resource(target) = self else {
            return if method == Method::GET {
                Ok(Verb::Discover)
            } else {
                Err(refusal::method_not_allowed())
            };
        };
        let verb = match (method, &target.name) {
            (&Method::GET, None) if query.flag("watch") => Verb::Watch,
            (&Method::GET, None) => Verb::List,
            (&Method::POST, None) => Verb::Create,
            (&Method::DELETE, None) => Verb::DeleteCollection,
            (&Method::GET, Some(_)) => Verb::Get,
            (&Method::PUT, Some(_)) => Verb::Update,
            (&Method::PATCH, Some(_)) => Verb::Patch,
            (&Method::DELETE, Some(_)) => Verb::Delete,
            _ => return Err(refusal::method_not_allowed()),
        };
        Ok(verb)
    }
}

/// The parameters of a request. Empty values count as absent, as Kubernetes has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// kube writes `?&limit=30` and `name?`: empty parts mean nothing.
    pub(super) fn parse(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(pairs.into_owned().filter(|(_, value)| !value.is_empty()).collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    /// A number, or 400 when it is something else.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Box<Status>> {
        let parse = |text: &str| {
            text.parse()
                .map_err(|_| refusal::bad_request(format!("invalid value {text:?} for the parameter {name}")))
        };
        self.get(name).map(parse).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> Target {
        match Route::parse(path) {
            Some(Route::Resource(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_name_collections_objects_and_subresources() {
        let all = resource("/apis/kflare.dev/v1alpha1/zones");
        assert_eq!(
            (all.group.as_str(), all.version.as_str(), all.plural.as_str()),
            ("kflare.dev", "v1alpha1", "zones")
        );
        assert_eq!((all.namespace, all.name), (None, None));
        let status = resource("/apis/kflare.dev/v1alpha1/namespaces/a/zones/b/status");
        assert_eq!(
            (status.namespace.as_deref(), status.name.as_deref()),
            (Some("a"), Some("b"))
        );
        assert_eq!(status.subresource.as_deref(), Some("status"));
        let secrets = resource("/api/v1/namespaces/a/secrets");
        assert_eq!((secrets.group.as_str(), secrets.plural.as_str()), ("", "secrets"));
        assert_eq!(secrets.namespace.as_deref(), Some("a"));
    }

    #[test]
    fn a_namespace_is_an_object_too() {
        let namespace = resource("/api/v1/namespaces/a");
        assert_eq!(
            (namespace.plural.as_str(), namespace.name.as_deref()),
            ("namespaces", Some("a"))
        );
        let status = resource("/api/v1/namespaces/a/status");
        assert_eq!(
            (status.namespace, status.subresource.as_deref()),
            (None, Some("status"))
        );
    }

    #[test]
    fn everything_else_is_discovery_or_nothing() {
        assert_eq!(Route::parse("/apis"), Some(Route::Groups));
        let resources = Route::Resources {
            group: "a".to_owned(),
            version: "v1".to_owned(),
        };
        assert_eq!(Route::parse("/apis/a/v1"), Some(resources));
        assert_eq!(Route::parse("/healthz"), None);
        assert_eq!(Route::parse("/apis/a/v1/b/c/d/e"), None);
    }

    #[test]
    fn odd_queries_of_kube_are_understood() {
        let query = Query::parse(&Uri::from_static("/x?&limit=30&continue=a%3Db&fieldManager="));
        assert_eq!(query.number("limit"), Ok(Some(30)));
        assert_eq!(query.get("continue"), Some("a=b"));
        assert_eq!(query.get("fieldManager"), None);
        assert_eq!(
            Query::parse(&Uri::from_static("/x?&limit=many"))
                .number("limit")
                .unwrap_err()
                .code,
            400
        );
    }
}
