//! Reasons of conditions that some kinds have for themselves. Those of all kinds are constants of [`kflare_engine::Reason`].

kflare_engine::reasons! {
    /// A tunnel is being deleted, and its connectors run.
    ACTIVE_CONNECTIONS = "ActiveConnections";
    /// Another resource configures the managed transforms of the zone.
    ALREADY_CONFIGURED = "AlreadyConfigured";
    /// What a binding of a Worker names does not exist at Cloudflare.
    BINDING_NOT_FOUND = "BindingNotFound";
    /// A bucket is being deleted, and holds objects.
    BUCKET_NOT_EMPTY = "BucketNotEmpty";
    /// A list is being deleted, and rules use it.
    LIST_IN_USE = "ListInUse";
    /// A tunnel is configured where its connectors run.
    LOCALLY_MANAGED = "LocallyManaged";
    /// The last migration of a Worker's Durable Objects is none of those that the spec names.
    MIGRATION_TAG_UNKNOWN = "MigrationTagUnknown";
    /// Another route of the zone has the pattern.
    PATTERN_CONFLICT = "PatternConflict";
    /// R2 is not switched on for the account.
    R2_NOT_ENABLED = "R2NotEnabled";
    /// Other records of the name stand in the way.
    RECORD_CONFLICT = "RecordConflict";
    /// A rule of the zone puts the same ruleset in force.
    RULESET_CONFLICT = "RulesetConflict";
    /// The account may not change the storage class of a bucket.
    STORAGE_CLASS_NOT_CHANGEABLE = "StorageClassNotChangeable";
    /// Another resource configures the tunnel.
    TUNNEL_ALREADY_CONFIGURED = "TunnelAlreadyConfigured";
}
