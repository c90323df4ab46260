//! Cloudflare Tunnels that cloudflared connects (`cfd_tunnel`), and their configurations.

use jiff::Timestamp;
use secrecy::SecretString;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::{Client, Error, Paging, Request};

/// A tunnel.
///
/// Deleted tunnels stay readable: their `deleted_at` is set (seen live). Lists leave them out only when asked to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tunnel {
    /// The id: a UUID.
    pub id: String,
    /// The name; one live tunnel of an account has it.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// `inactive` (never connected), `healthy`, `degraded` or `down`.
    #[serde(default)]
    pub status: Option<String>,
    /// Where its configuration is kept: `cloudflare`, or `local` with the connector. Absent once deleted (seen live).
    #[serde(default)]
    pub config_src: Option<String>,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_at: Option<Timestamp>,
    /// When it was deleted; none while it lives.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub deleted_at: Option<Timestamp>,
}

/// The configuration of a tunnel: one document, replaced as a whole.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Configuration {
    /// The id of the tunnel.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub tunnel_id: String,
    /// Grows by one with each write; 0 before the first (seen live).
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub version: i64,
    /// The document; none before the first write (seen live).
    #[serde(default)]
    pub config: Option<Value>,
    /// Where it is kept: `cloudflare` or `local`.
    #[serde(default)]
    pub source: Option<String>,
    /// When this version was written, of version 0 when the tunnel was made (seen live).
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_at: Option<Timestamp>,
}

/// Rows of a page of tunnels (seen live).
const PER_PAGE: u32 = 1000;

fn live(account_id: &str) -> Request {
    Request::get("/accounts/{account_id}/cfd_tunnel", &[account_id]).query("is_deleted", "false")
}

/// Every tunnel of an account that is not deleted.
pub async fn list(client: &Client, account_id: &str) -> Result<Vec<Tunnel>, Error> {
    let paging = Paging::Page { per_page: PER_PAGE };
    let mut tunnels: Vec<Tunnel> = client.list_pages(live(account_id), paging).await?;
    tunnels.retain(|tunnel| tunnel.deleted_at.is_none());
    Ok(tunnels)
}

/// The tunnels of this name that are not deleted: none or one.
pub async fn find(client: &Client, account_id: &str, name: &str) -> Result<Vec<Tunnel>, Error> {
    let paging = Paging::Page { per_page: PER_PAGE };
    let request = live(account_id).query("name", name);
    let mut tunnels: Vec<Tunnel> = client.list_pages(request, paging).await?;
    tunnels.retain(|tunnel| tunnel.deleted_at.is_none() && tunnel.name == name);
    Ok(tunnels)
}

/// One tunnel, deleted or not.
pub async fn get(client: &Client, account_id: &str, tunnel_id: &str) -> Result<Tunnel, Error> {
    let segments = [account_id, tunnel_id];
    client
        .call(Request::get("/accounts/{account_id}/cfd_tunnel/{tunnel_id}", &segments))
        .await
}

/// Makes a tunnel whose configuration is kept at Cloudflare. Its secrets, which the answer holds too, are not read here: see
/// [`token`].
pub async fn create(client: &Client, account_id: &str, name: &str) -> Result<Tunnel, Error> {
    let body = json!({"name": name, "config_src": "cloudflare"});
    client
        .call(Request::post("/accounts/{account_id}/cfd_tunnel", &[account_id]).json(&body))
        .await
}

/// Renames a tunnel.
pub async fn rename(client: &Client, account_id: &str, tunnel_id: &str, name: &str) -> Result<Tunnel, Error> {
    let segments = [account_id, tunnel_id];
    client
        .call(Request::patch("/accounts/{account_id}/cfd_tunnel/{tunnel_id}", &segments).json(&json!({"name": name})))
        .await
}

/// Deletes a tunnel. Refused with 1022 while a connector is connected.
pub async fn delete(client: &Client, account_id: &str, tunnel_id: &str) -> Result<(), Error> {
    let segments = [account_id, tunnel_id];
    client
        .call::<IgnoredAny>(Request::delete(
            "/accounts/{account_id}/cfd_tunnel/{tunnel_id}",
            &segments,
        ))
        .await
        .map(drop)
}

/// Forgets the connections of a tunnel: those of connectors that vanished go, a running connector comes back by itself.
pub async fn clean_up_connections(client: &Client, account_id: &str, tunnel_id: &str) -> Result<(), Error> {
    let segments = [account_id, tunnel_id];
    client
        .call::<IgnoredAny>(Request::delete(
            "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/connections",
            &segments,
        ))
        .await
        .map(drop)
}

/// The token with which a connector runs the tunnel. It can be read at any time (seen live).
pub async fn token(client: &Client, account_id: &str, tunnel_id: &str) -> Result<SecretString, Error> {
    let segments = [account_id, tunnel_id];
    client
        .call::<String>(Request::get(
            "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/token",
            &segments,
        ))
        .await
        .map(SecretString::from)
}

/// The configuration of a tunnel.
pub async fn configuration(client: &Client, account_id: &str, tunnel_id: &str) -> Result<Configuration, Error> {
    let segments = [account_id, tunnel_id];
    client
        .call(Request::get(
            "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations",
            &segments,
        ))
        .await
}

/// Replaces the configuration of a tunnel. The last rule of `config.ingress` must match everything (1056).
pub async fn put_configuration(
    client: &Client,
    account_id: &str,
    tunnel_id: &str,
    config: &Value,
) -> Result<Configuration, Error> {
    let segments = [account_id, tunnel_id];
    client
        .call(
            Request::put(
                "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations",
                &segments,
            )
            .json(&json!({"config": config})),
        )
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_live_and_deleted_tunnels() {
        let live: Tunnel = serde_json::from_value(json!({
            "id": "t1", "name": "edge", "status": "inactive", "connections": [], "deleted_at": null,
            "created_at": "2026-09-29T10:00:00.497020Z", "config_src": "cloudflare", "remote_config": true,
            "token": "not read", "credentials_file": {"TunnelSecret": "not read"}
        }))
        .unwrap();
        assert_eq!(
            (live.config_src.as_deref(), live.deleted_at),
            (Some("cloudflare"), None)
        );
        let gone: Tunnel = serde_json::from_value(json!({
            "id": "t1", "name": "edge", "status": "down", "deleted_at": "2026-09-29T11:00:00.000000Z"
        }))
        .unwrap();
        assert!(gone.deleted_at.is_some() && gone.config_src.is_none());
    }

    #[test]
    fn reads_a_configuration_before_the_first_write() {
        let first: Configuration = serde_json::from_value(json!({
            "tunnel_id": "t1", "version": 0, "config": null, "source": "cloudflare", "created_at": "2026-09-29T10:00:00Z"
        }))
        .unwrap();
        assert_eq!((first.version, first.config), (0, None));
    }
}
