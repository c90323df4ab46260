//! Tunnels, their configurations and their connectors.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::time::micros;

/// How long the connections of a connector that vanished are still shown. "A few minutes", says Cloudflare's refusal; how
/// many is unproven.
const LINGERS: SignedDuration = SignedDuration::from_mins(3);

/// Since then `connections` is no longer part of a tunnel in answers to get and list (announced by Cloudflare).
const CONNECTIONS_LEFT_OUT: &str = "2026-10-05T00:00:00Z";

/// Where the configuration of a tunnel is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigSource {
    /// At Cloudflare.
    Cloudflare,
    /// With the connector.
    #[default]
    Local,
}

impl ConfigSource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cloudflare => "cloudflare",
            Self::Local => "local",
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Tunnel {
    /// A UUID.
    pub(crate) id: String,
    pub(crate) account_id: String,
    pub(crate) name: String,
    /// Base64.
    pub(crate) secret: String,
    pub(crate) config_src: ConfigSource,
    pub(crate) created_at: Timestamp,
    pub(crate) deleted_at: Option<Timestamp>,
    pub(crate) configuration: Configuration,
    pub(crate) connectors: Vec<Connector>,
    /// When the first of the present connections was made.
    pub(crate) active_at: Option<Timestamp>,
    /// When the last connection was lost; none if there never was one.
    pub(crate) lost_at: Option<Timestamp>,
}

impl std::fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tunnel")
            .field("id", &self.id)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// One version of the configuration document.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Configuration {
    pub(crate) version: u64,
    /// None before the first write.
    pub(crate) config: Option<Map<String, Value>>,
    pub(crate) created_at: Timestamp,
}

/// A cloudflared process that runs the tunnel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Connector {
    /// A UUID.
    pub(crate) id: String,
    /// UUIDs of its connections.
    pub(crate) connections: Vec<String>,
    pub(crate) run_at: Timestamp,
    /// When it vanished without a word.
    pub(crate) vanished_at: Option<Timestamp>,
}

impl Connector {
    /// Whether its connections are still shown.
    fn is_shown_at(&self, now: Timestamp) -> bool {
        self.vanished_at.is_none_or(|at| now.duration_since(at) < LINGERS)
    }
}

impl Tunnel {
    pub(crate) fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }

    /// What a connector runs the tunnel with: base64 of a JSON object.
    pub(crate) fn token(&self) -> String {
        let parts = json!({ "a": self.account_id, "t": self.id, "s": self.secret });
        STANDARD.encode(parts.to_string())
    }

    /// The connectors whose connections are there, or seem to be.
    pub(crate) fn connected(&self, now: Timestamp) -> impl Iterator<Item = &Connector> {
        self.connectors.iter().filter(move |it| it.is_shown_at(now))
    }

    /// Lets vanished connectors go whose time is over.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        self.connectors.retain(|it| it.is_shown_at(now));
        self.note_loss(now);
    }

    /// Forgets the connections of connectors that no longer run. Those that run come back at once (unproven: it takes them
    /// a moment).
    pub(crate) fn clean_up(&mut self, now: Timestamp) {
        self.connectors.retain(|it| it.vanished_at.is_none());
        self.note_loss(now);
    }

    pub(crate) fn note_loss(&mut self, now: Timestamp) {
        if self.connectors.is_empty() && self.active_at.take().is_some() {
            self.lost_at = Some(now);
        }
    }

    /// `inactive`, `healthy` or `down`. One connector with all its connections is healthy; degraded ones are not modelled.
    pub(crate) fn status(&self, now: Timestamp) -> &'static str {
        if !self.is_live() {
            "down"
        } else if self.connected(now).next().is_some() {
            "healthy"
        } else if self.active_at.is_some() || self.lost_at.is_some() {
            "down"
        } else {
            "inactive"
        }
    }

    /// The tunnel as get and list show it.
    pub(crate) fn render(&self, now: Timestamp) -> Map<String, Value> {
        let mut shown = self.render_with_connections(now);
        let left_out = CONNECTIONS_LEFT_OUT.parse::<Timestamp>();
        if left_out.is_ok_and(|since| now >= since) {
            shown.remove("connections");
        }
        shown
    }

    /// The tunnel as writes answer it. The fields by state were seen live.
    pub(crate) fn render_with_connections(&self, now: Timestamp) -> Map<String, Value> {
        let connected = self.connected(now).next().is_some();
        let connections: Vec<Value> = self
            .connected(now)
            .flat_map(|connector| connector.connections.iter().map(|id| connection(connector, id)))
            .collect();
        let active_at = self.active_at.filter(|_| connected).map(micros);
        let inactive_at = (!connected).then(|| micros(self.lost_at.unwrap_or(self.created_at)));
        let mut shown = Map::new();
        let mut set = |key: &str, value: Value| drop(shown.insert(key.to_owned(), value));
        set("id", json!(self.id));
        set("account_tag", json!(self.account_id));
        set("created_at", json!(micros(self.created_at)));
        set("deleted_at", json!(self.deleted_at.map(micros)));
        set("name", json!(self.name));
        set("connections", json!(connections));
        set("conns_active_at", json!(active_at));
        set("conns_inactive_at", json!(inactive_at));
        set("tun_type", json!("cfd_tunnel"));
        set("metadata", json!({}));
        set("status", json!(self.status(now)));
        let remote = self.is_live() && self.config_src == ConfigSource::Cloudflare;
        set("remote_config", json!(remote));
        if self.is_live() {
            set("config_src", json!(self.config_src.name()));
        }
        shown
    }

    /// The secrets that only the answer to a create holds.
    pub(crate) fn render_secrets(&self) -> Map<String, Value> {
        let mut shown = Map::new();
        let file = json!({
            "AccountTag": self.account_id,
            "TunnelID": self.id,
            "TunnelName": self.name,
            "TunnelSecret": self.secret,
        });
        shown.insert("credentials_file".to_owned(), file);
        shown.insert("token".to_owned(), json!(self.token()));
        shown
    }

    pub(crate) fn render_configuration(&self) -> Value {
        let configuration = &self.configuration;
        json!({
            "tunnel_id": self.id,
            "version": configuration.version,
            "config": configuration.config,
            "source": self.config_src.name(),
            "created_at": micros(configuration.created_at),
        })
    }
}

/// A connection as a tunnel, or its connector, shows it.
pub(crate) fn connection(connector: &Connector, id: &str) -> Value {
    json!({
        "colo_name": "sim01",
        "uuid": id,
        "id": id,
        "is_pending_reconnect": false,
        "origin_ip": "192.0.2.10",
        "opened_at": micros(connector.run_at),
        "client_id": connector.id,
        "client_version": VERSION,
    })
}

/// What the simulated connectors call themselves.
pub(crate) const VERSION: &str = "2026.9.1";
