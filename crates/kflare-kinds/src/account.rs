//! `CloudflareAccount`: checked, never changed. Ready means that the token is active and reaches the account.

use async_trait::async_trait;
use kflare_api::account::CloudflareAccountSpec;
use kflare_cloudflare::{Client, Error, TokenFault, endpoints::accounts};
use kflare_engine::{
    Adapter, Desired, KindDescriptor, NaturalKey, Parents, Reason, Reference, Remote, SpecError,
    errors::Class,
    kind::{CredentialSource, LabelSelector, Lifecycle, ResourceScope},
    object::SecretKey,
};
use serde_json::{Map, Value, json};

/// The adapter.
pub struct AccountAdapter {
    descriptor: KindDescriptor,
}

impl AccountAdapter {
    /// The adapter.
    #[allow(clippy::new_without_default)] // adapters are made in one place, the registry
    pub fn new() -> Self {
        Self {
            descriptor: KindDescriptor {
                resource_scope: ResourceScope::Cluster,
                lifecycle: Lifecycle::Verified,
                listable: false,
                provides_credential: true,
                ..KindDescriptor::new("CloudflareAccount", "cloudflareaccounts", "Account", "accounts")
            },
        }
    }
}

/// Whether Cloudflare says that the token itself is bad, rather than that it may not do something.
fn token_refused(error: &Error) -> bool {
    const INVALID_TOKEN: i64 = 1000;
    const INVALID_HEADERS: i64 = 6003;
    matches!(error, Error::InvalidToken(_))
        || error.status() == Some(401)
        || error.has_code(INVALID_TOKEN)
        || error.has_code(INVALID_HEADERS)
}

#[async_trait]
impl Adapter for AccountAdapter {
    type Spec = CloudflareAccountSpec;

    fn descriptor(&self) -> &KindDescriptor {
        &self.descriptor
    }

    fn references(&self, _spec: &CloudflareAccountSpec) -> Vec<Reference> {
        Vec::new()
    }

    fn credential(&self, spec: &CloudflareAccountSpec) -> Option<CredentialSource> {
        let secret = &spec.token_secret_ref;
        Some(CredentialSource {
            account_id: spec.account_id.clone(),
            secret: SecretKey {
                namespace: secret.namespace.as_str().into(),
                name: secret.name.as_str().into(),
            },
            key: secret.key.clone(),
            allowed_namespaces: spec.allowed_namespaces.clone().map(LabelSelector),
            default_deletion: spec
                .default_deletion_policy
                .and_then(|policy| match serde_json::to_value(policy) {
                    Ok(Value::String(text)) => Some(text),
                    _ => None,
                }),
        })
    }

    fn scope(&self, _spec: &CloudflareAccountSpec, parents: &Parents) -> String {
        parents.account_id.clone()
    }

    fn desired(&self, _spec: &CloudflareAccountSpec, parents: &Parents) -> Result<Desired, SpecError> {
        let key = NaturalKey {
            group: parents.account_id.clone(),
            member: String::new(),
        };
        let body = Map::from_iter([("token".to_owned(), json!("active"))]);
        Ok(Desired {
            key,
            exclusive: true,
            body,
            ..Desired::default()
        })
    }

    async fn get(&self, client: &Client, account_id: &str, _id: &str) -> Result<Option<Remote>, Error> {
        // The user endpoint refuses account-owned tokens although they are valid.
        let (token, owner) = match accounts::verify_user_token(client).await {
            Ok(token) => (token, "user"),
            Err(error) if matches!(error.status(), Some(400 | 401 | 403)) => {
                (accounts::verify_account_token(client, account_id).await?, "account")
            }
            Err(error) => return Err(error),
        };
        match token.status.as_str() {
            "disabled" => return Err(Error::InvalidToken(TokenFault::Disabled)),
            "expired" => return Err(Error::InvalidToken(TokenFault::Expired)),
            _ => {}
        }
        let name = account_name(client, account_id).await?;
        let status = json!({
            "accountName": name,
            "token": {
                "id": token.id,
                "kind": owner,
                "expiresOn": token.expires_on.map(|at| at.to_string()),
            },
        });
        let mut status = status.as_object().cloned().unwrap_or_default();
        status.retain(|_, value| !value.is_null());
        if let Some(Value::Object(token)) = status.get_mut("token") {
            token.retain(|_, value| !value.is_null());
        }
        Ok(Some(Remote {
            id: account_id.to_owned(),
            key: NaturalKey {
                group: account_id.to_owned(),
                member: String::new(),
            },
            body: Map::from_iter([("token".to_owned(), json!(token.status))]),
            status,
            ..Remote::default()
        }))
    }

    fn classify(&self, error: &Error) -> Option<Class> {
        token_refused(error).then_some(Class::Blocked(Reason::INVALID_TOKEN))
    }
}

/// The account's name, when the token may know it. A token that is limited to zones may read neither its account nor the list
/// of accounts; then its zones are what shows whether it reaches the account, each for itself.
async fn account_name(client: &Client, account_id: &str) -> Result<Option<String>, Error> {
    match accounts::get(client, account_id).await {
        Ok(account) => Ok(Some(account.name)),
        Err(error) if error.status() == Some(403) => match accounts::list(client).await {
            Ok(seen) if seen.is_empty() => Ok(None),
            // It sees accounts, and this is none of them.
            Ok(seen) => match seen.into_iter().find(|account| account.id == account_id) {
                Some(account) => Ok(Some(account.name)),
                None => Err(error),
            },
            Err(refused) if refused.status() == Some(403) => Ok(None),
            Err(other) => Err(other),
        },
        Err(error) => Err(error),
    }
}
