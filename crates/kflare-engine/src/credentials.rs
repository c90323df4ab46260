//! Tokens: read from their Secret when first needed, kept as a client until the Secret or the reference changes.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use kflare_cloudflare::{Client, Pool, WriteGate};

use crate::{
    cluster::{Cluster, ClusterError, Protection},
    errors::{Class, Failure},
    kind::CredentialSource,
    mutation::{self, Mutation},
    object::{ObjectKey, SecretKey},
    reason::Reason,
};

/// Gives the client for an account resource.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// The client of `account`, whose token is at `source`.
    async fn client(&self, account: &ObjectKey, source: &CredentialSource) -> Result<Client, Failure>;
}

struct Held {
    secret: SecretKey,
    key: String,
    client: Client,
}

/// Credentials out of Secrets.
pub struct SecretCredentials {
    cluster: Cluster,
    pool: Pool,
    gate: Arc<dyn WriteGate>,
    held: Mutex<BTreeMap<ObjectKey, Held>>,
}

impl SecretCredentials {
    /// Clients out of `pool` that ask `gate` before each write.
    pub fn new(cluster: Cluster, pool: Pool, gate: Arc<dyn WriteGate>) -> Self {
        Self {
            cluster,
            pool,
            gate,
            held: Mutex::new(BTreeMap::new()),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, Held>> {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How many clients are kept.
    pub fn size(&self) -> usize {
        self.held().len()
    }

    /// The Secret has changed: its token is read again when next needed.
    pub fn forget_secret(&self, secret: &SecretKey) {
        if mutation::is(Mutation::TokenKeptForEver) {
            return;
        }
        self.held().retain(|_, held| held.secret != *secret);
    }

    /// The account is gone.
    pub fn forget(&self, account: &ObjectKey) {
        self.held().remove(account);
    }

    /// Puts our protection on the Secret, so that it cannot vanish under its account.
    pub async fn protect(&self, secret: &SecretKey) -> Result<(), Failure> {
        self.cluster
            .protect_secret(secret, Protection::On)
            .await
            .map_err(|error| not_read(secret, &error))
    }
}

fn not_read(secret: &SecretKey, error: &ClusterError) -> Failure {
    match error {
        ClusterError::NotFound => {
            let message = format!("Secret {secret} does not exist; create it, or correct spec.tokenSecretRef");
            Failure::new(Class::Blocked(Reason::SECRET_NOT_FOUND), message)
        }
        ClusterError::Stopped(why) => Failure::new(Class::Stopped, why.clone()),
        ClusterError::Conflict => Failure::new(Class::StoreConflict, format!("Secret {secret} has changed meanwhile")),
        other => Failure::new(Class::Transient, format!("Secret {secret} could not be read: {other}")),
    }
}

#[async_trait]
impl Credentials for SecretCredentials {
    async fn client(&self, account: &ObjectKey, source: &CredentialSource) -> Result<Client, Failure> {
        if let Some(held) = self.held().get(account)
            && held.secret == source.secret
            && held.key == source.key
        {
            return Ok(held.client.clone());
        }
        let view = self
            .cluster
            .read_secret(&source.secret, &source.key)
            .await
            .map_err(|e| not_read(&source.secret, &e))?;
        let Some(token) = view.value else {
            let message = format!(
                "Secret {} has no value under key {}; add it, or set spec.tokenSecretRef.key",
                source.secret, source.key
            );
            return Err(Failure::new(Class::Blocked(Reason::TOKEN_KEY_MISSING), message));
        };
        let client = self
            .pool
            .client(&account.name, token)
            .with_seal_key(view.uid.into())
            .with_write_gate(self.gate.clone());
        let held = Held {
            secret: source.secret.clone(),
            key: source.key.clone(),
            client: client.clone(),
        };
        self.held().insert(account.clone(), held);
        Ok(client)
    }
}

/// One token for every account: what commands without a cluster use.
pub struct FixedCredentials {
    client: Client,
}

impl FixedCredentials {
    /// Uses `client` for all accounts.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

#[async_trait]
impl Credentials for FixedCredentials {
    async fn client(&self, _account: &ObjectKey, _source: &CredentialSource) -> Result<Client, Failure> {
        Ok(self.client.clone())
    }
}
