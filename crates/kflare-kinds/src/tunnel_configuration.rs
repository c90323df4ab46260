//! `TunnelConfiguration`: the one document of a tunnel. What it says is in [`document`]; here is how it is read and written.
//! This is the only writer of the document.

mod document;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use kflare_api::{names, tunnel_configuration::TunnelConfigurationSpec};
use kflare_cloudflare::{
    Client, Error,
    endpoints::tunnels::{self, Configuration},
};
use kflare_engine::{
    Adapter, Change, Deleted, Desired, KindDescriptor, NaturalKey, Parents, Reference, Remote, Site, SpecError, Stored,
    errors::Class,
    kind::{ClaimNames, KindReasons, Nature},
};
use serde_json::{Map, Value, json};

use crate::{
    reasons,
    tunnel::{classify, is_missing},
};

/// Where the document of a tunnel that is configured with its connectors is kept.
const LOCAL: &str = "local";

/// Splits a scope into the account and the tunnel.
const SEPARATOR: char = '/';

/// The adapter.
pub struct ConfigurationAdapter {
    descriptor: KindDescriptor,
}

impl ConfigurationAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                claim: Some(ClaimNames {
                    status_field: "tunnelID".into(),
                    label: names::TUNNEL_CONFIGURATION_ID.into(),
                }),
                listable: false,
                nature: Nature {
                    singleton: true,
                    ..Nature::default()
                },
                reasons: KindReasons {
                    claimed: reasons::TUNNEL_ALREADY_CONFIGURED,
                    locked: reasons::LOCALLY_MANAGED,
                    ..KindReasons::default()
                },
                ..KindDescriptor::new(
                    "TunnelConfiguration",
                    "tunnelconfigurations",
                    "TunnelConfiguration",
                    "tunnel_configurations",
                )
            },
        }
    }
}

/// A tunnel has one document.
fn key() -> NaturalKey {
    NaturalKey {
        group: "configuration".to_owned(),
        member: String::new(),
    }
}

/// The account and the tunnel of a scope.
fn place(scope: &str) -> (&str, &str) {
    scope.split_once(SEPARATOR).unwrap_or((scope, ""))
}

/// A document in canonical form. A tunnel that never had one, and is not configured elsewhere, has none.
fn remote(tunnel_id: &str, configuration: Configuration) -> Option<Remote> {
    let locked = (configuration.source.as_deref() == Some(LOCAL))
        .then(|| "configured where its connectors run (config_src is local)".to_owned());
    let config = match configuration.config {
        Some(Value::Object(config)) => config,
        _ if locked.is_none() => return None,
        _ => Map::new(),
    };
    let metadata = json!({ "tunnelID": tunnel_id, "version": configuration.version });
    Some(Remote {
        id: tunnel_id.to_owned(),
        key: key(),
        body: document::canonical(&config),
        created: configuration.created_at,
        locked,
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        ..Remote::default()
    })
}

async fn read(client: &Client, scope: &str) -> Result<Option<Configuration>, Error> {
    let (account_id, tunnel_id) = place(scope);
    match tunnels::configuration(client, account_id, tunnel_id).await {
        Ok(configuration) => Ok(Some(configuration)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the document of `desired`. What stands in it that is not for kflare to say stays.
async fn put(client: &Client, scope: &str, desired: &Desired) -> Result<Stored, Error> {
    let (account_id, tunnel_id) = place(scope);
    let standing = tunnels::configuration(client, account_id, tunnel_id).await?;
    let standing = standing.config.as_ref().and_then(Value::as_object).cloned();
    let config = document::written(standing.unwrap_or_default(), &desired.body);
    let written = tunnels::put_configuration(client, account_id, tunnel_id, &Value::Object(config)).await?;
    let version = written.version;
    remote(tunnel_id, written)
        .map(Stored::from)
        .ok_or_else(|| Error::Refused(format!("Cloudflare answered version {version} without a document")))
}

#[async_trait]
impl Adapter for ConfigurationAdapter {
    type Spec = TunnelConfigurationSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, spec: &TunnelConfigurationSpec) -> Vec<Reference> {
        vec![Reference::new("tunnelRef", "Tunnel", spec.tunnel_ref.name.as_str())]
    }

    fn scope(&self, _spec: &TunnelConfigurationSpec, parents: &Parents) -> String {
        let tunnel = parents
            .get("tunnelRef")
            .map(|tunnel| tunnel.id.as_str())
            .unwrap_or_default();
        if tunnel.is_empty() {
            String::new()
        } else {
            format!("{}{SEPARATOR}{tunnel}", parents.account_id)
        }
    }

    fn desired(&self, spec: &TunnelConfigurationSpec, _parents: &Parents) -> Result<Desired, SpecError> {
        Ok(Desired {
            key: key(),
            exclusive: true,
            body: document::wanted(spec)?,
            ..Desired::default()
        })
    }

    async fn find(&self, client: &Client, scope: &str, _key: &NaturalKey) -> Result<Vec<Remote>, Error> {
        // That there is none means that the tunnel is gone: nothing can be made in it.
        let (account_id, tunnel_id) = place(scope);
        let found = remote(tunnel_id, tunnels::configuration(client, account_id, tunnel_id).await?);
        // What a deletion leaves is nobody's configuration.
        Ok(found
            .into_iter()
            .filter(|remote| remote.locked.is_some() || !document::is_bare(&remote.body))
            .collect())
    }

    async fn get(&self, client: &Client, scope: &str, id: &str) -> Result<Option<Remote>, Error> {
        let found = read(client, scope).await?;
        Ok(found.and_then(|configuration| remote(id, configuration)))
    }

    async fn create(&self, client: &Client, site: Site<'_>, desired: &Desired) -> Result<Stored, Error> {
        put(client, site.scope, desired).await
    }

    async fn update(
        &self,
        client: &Client,
        site: Site<'_>,
        _id: &str,
        desired: &Desired,
        _changes: &[Change],
    ) -> Result<Stored, Error> {
        put(client, site.scope, desired).await
    }

    /// There is no way to delete a document: it is set back to the rule that answers 404.
    async fn delete(&self, client: &Client, site: Site<'_>, _id: &str) -> Result<Deleted, Error> {
        let (account_id, tunnel_id) = place(site.scope);
        let bare = Value::Object(document::bare());
        match tunnels::put_configuration(client, account_id, tunnel_id, &bare).await {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(Deleted::default()),
        }
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        classify(error)
    }
}
