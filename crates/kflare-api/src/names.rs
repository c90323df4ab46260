//! Every name that kflare puts on a Kubernetes object: finalizers, annotations, labels, group and version.

/// API group of every kind.
pub const GROUP: &str = "kflare.dev";
/// API version of every kind.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of every kind: group and version.
pub const API_VERSION: &str = "kflare.dev/v1alpha1";
/// Category of every kind: `kubectl get kflare` lists them all.
pub const CATEGORY: &str = "kflare";

/// Finalizer on every managed resource. Cloudflare is cleaned up before it goes.
pub const FINALIZER: &str = "kflare.dev/finalizer";
/// Finalizer on a token Secret while a `CloudflareAccount` refers to it.
pub const TOKEN_PROTECTION: &str = "kflare.dev/token-protection";

/// Annotation, set by users: `adopt`, `adopt-or-create` or `adopt-if-matching`. Unset: an existing object is left alone.
pub const ADOPTION_POLICY: &str = "kflare.dev/adoption-policy";
/// Annotation, set by users: `delete` or `retain`. Unset: delete what kflare created, keep what it adopted.
pub const DELETION_POLICY: &str = "kflare.dev/deletion-policy";
/// Annotation, set by users: `"true"` stops every Cloudflare call for the resource.
pub const PAUSED: &str = "kflare.dev/paused";
/// Annotation, set by users: `observe` reads and reports, and never writes.
pub const MODE: &str = "kflare.dev/mode";
/// Annotation, set by users: any new value asks for one reconcile now.
pub const RECONCILE_AT: &str = "kflare.dev/reconcile-at";
/// Annotation, set by users: overrides the operator's drift check interval, as a duration such as `30m`; `0s` is off.
pub const DRIFT_CHECK_INTERVAL: &str = "kflare.dev/drift-check-interval";
/// Annotation, set by kflare: `"true"` on a resource whose remote object existed before.
pub const ADOPTED: &str = "kflare.dev/adopted";
/// Annotation, set by kflare before a create and dropped after it: finds an object whose creation was not seen to the end.
pub const CREATE_INTENT: &str = "kflare.dev/create-intent";

/// Every annotation that users set.
pub const USER_ANNOTATIONS: [&str; 6] = [
    ADOPTION_POLICY,
    DELETION_POLICY,
    PAUSED,
    MODE,
    RECONCILE_AT,
    DRIFT_CHECK_INTERVAL,
];
/// Every annotation that kflare reads.
pub const ANNOTATIONS: [&str; 8] = [
    ADOPTION_POLICY,
    DELETION_POLICY,
    PAUSED,
    MODE,
    RECONCILE_AT,
    DRIFT_CHECK_INTERVAL,
    ADOPTED,
    CREATE_INTENT,
];

/// Label, set by kflare: claims a zone by its Cloudflare id.
pub const ZONE_ID: &str = "kflare.dev/zone-id";
/// Label, set by kflare: claims a DNS record by its Cloudflare id.
pub const RECORD_ID: &str = "kflare.dev/record-id";
/// Label, set by kflare: claims a KV namespace by its Cloudflare id.
pub const KV_NAMESPACE_ID: &str = "kflare.dev/kv-namespace-id";
/// Label, set by kflare: claims an R2 bucket by its name, within its account and jurisdiction.
pub const R2_BUCKET_NAME: &str = "kflare.dev/r2-bucket-name";
/// Label, set by kflare: claims a D1 database by its Cloudflare id.
pub const D1_DATABASE_ID: &str = "kflare.dev/d1-database-id";
/// Label, set by kflare: claims a queue by its Cloudflare id.
pub const QUEUE_ID: &str = "kflare.dev/queue-id";
/// Label, set by kflare: claims a rule of a ruleset by its Cloudflare id.
pub const RULE_ID: &str = "kflare.dev/rule-id";
/// Label, set by kflare: claims the managed transforms of a zone by the zone's Cloudflare id.
pub const MANAGED_TRANSFORMS: &str = "kflare.dev/managed-transforms-of";
/// Label, set by kflare: claims a list by its Cloudflare id.
pub const LIST_ID: &str = "kflare.dev/list-id";
/// Label, set by kflare: claims a Worker by the id that Cloudflare gave it.
pub const WORKER_ID: &str = "kflare.dev/worker-id";
/// Label, set by kflare: claims a Worker route by its Cloudflare id.
pub const ROUTE_ID: &str = "kflare.dev/route-id";
/// Label, set by kflare: claims a tunnel by its Cloudflare id.
pub const TUNNEL_ID: &str = "kflare.dev/tunnel-id";
/// Label, set by kflare: claims the configuration of a tunnel by the tunnel's Cloudflare id.
pub const TUNNEL_CONFIGURATION_ID: &str = "kflare.dev/tunnel-configuration-id";

/// Key of the token in its Secret, unless `spec.tokenSecretRef.key` says otherwise.
pub const DEFAULT_TOKEN_KEY: &str = "CF_API_TOKEN";
