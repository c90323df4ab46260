//! `Tunnel`: a Cloudflare Tunnel that is configured at Cloudflare. It yields a Secret with the token of its connectors.

use async_trait::async_trait;
use kflare_api::{
    names,
    tunnel::{TUNNEL_TOKEN_KEY, TunnelSpec},
};
use kflare_cloudflare::{
    Client, Error,
    endpoints::tunnels::{self, Tunnel},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, Listing, NaturalKey, Parents, Reason, Reference, Remote, Site,
    SpecError, Stored, Yield, errors::Class, kind::ClaimNames,
};
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use crate::reasons;

/// A live tunnel of the account has the name.
const EXISTS: i64 = 1013;

/// Connectors are connected.
const CONNECTED: i64 = 1022;

/// There is no such tunnel, or no token or configuration of it.
const MISSING: [i64; 3] = [1002, 1054, 1055];

/// The document is not one that connectors could use.
const BAD_CONFIGURATION: i64 = 1056;

/// The adapter.
pub struct TunnelAdapter {
    descriptor: KindDescriptor,
}

impl TunnelAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "tunnelID".into(),
                    label: names::TUNNEL_ID.into(),
                }),
                ..KindDescriptor::new("Tunnel", "tunnels", "Tunnel", "tunnels")
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

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn remote(tunnel: Tunnel) -> Remote {
    Remote {
        key: key(&tunnel.name),
        body: fields(json!({ "name": tunnel.name })),
        created: tunnel.created_at,
        metadata: fields(json!({ "tunnelID": tunnel.id, "status": tunnel.status })),
        id: tunnel.id,
        ..Remote::default()
    }
}

/// Whether Cloudflare says that the tunnel, or what was asked for of it, does not exist.
pub(crate) fn is_missing(error: &Error) -> bool {
    MISSING.iter().any(|code| error.has_code(*code))
}

/// What the codes of tunnels and their configurations mean.
pub(crate) fn classify(error: &Error) -> Option<Class> {
    if error.has_code(EXISTS) {
        Some(Class::Exists)
    } else if error.has_code(CONNECTED) {
        Some(Class::Blocked(reasons::ACTIVE_CONNECTIONS))
    } else if is_missing(error) {
        Some(Class::Missing)
    } else if error.has_code(BAD_CONFIGURATION) || matches!(error.status(), Some(400 | 422)) {
        Some(Class::Invalid(Reason::INVALID_SPEC))
    } else {
        None
    }
}

#[async_trait]
impl Adapter for TunnelAdapter {
    type Spec = TunnelSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &TunnelSpec) -> Vec<Reference> {
        vec![Reference::new(
            "accountRef",
            "CloudflareAccount",
            spec.account_ref.name.as_str(),
        )]
    }

    fn scope(&self, _spec: &TunnelSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, spec: &TunnelSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        Ok(Desired {
            key: key(&spec.name),
            exclusive: true,
            body: fields(json!({ "name": spec.name })),
            ..Desired::default()
        })
    }

    async fn list(&self, client: &Client, account_id: &str) -> Result<Listing, Error> {
        Ok(tunnels::list(client, account_id)
            .await?
            .into_iter()
            .map(remote)
            .collect())
    }

    async fn find(&self, client: &Client, account_id: &str, key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        let found = tunnels::find(client, account_id, &key.group).await?;
        Ok(found.into_iter().map(remote).collect())
    }

    /// Deleted tunnels stay readable, and are gone all the same.
    async fn get(&self, client: &Client, account_id: &str, id: &str) -> Result<Option<Remote>, Error> {
        match tunnels::get(client, account_id, id).await {
            Ok(tunnel) => Ok(tunnel.deleted_at.is_none().then(|| remote(tunnel))),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        let made = tunnels::create(client, site.scope, &desired.key.group).await?;
        Ok(remote(made).into())
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        _changes: &[Change],
    ) -> Result<Stored, Error> {
        let renamed = tunnels::rename(client, site.scope, id, &desired.key.group).await?;
        Ok(remote(renamed).into())
    }

    /// Connections of connectors that vanished would stand in the way for minutes. A connector that runs comes back, and
    /// Cloudflare refuses.
    async fn delete(&self, client: &Client, site: Site<'_>, id: &str) -> Result<Deleted, Error> {
        let cleaned = tunnels::clean_up_connections(client, site.scope, id).await;
        let deleted = match cleaned {
            Ok(()) => tunnels::delete(client, site.scope, id).await,
            Err(error) => Err(error),
        };
        match deleted {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(Deleted::default()),
        }
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        classify(error)
    }

    fn yields_secrets(&self) -> bool {
        true
    }

    fn yields(&self, spec: &TunnelSpec) -> Option<Yield> {
        Some(Yield {
            secret: spec.credentials_secret_ref.name.clone(),
            key: TUNNEL_TOKEN_KEY.into(),
        })
    }

    async fn yielded(&self, client: &Client, account_id: &str, id: &str) -> Result<SecretString, Error> {
        tunnels::token(client, account_id, id).await
    }
}
