//! What connectors and other people do to tunnels: for tests, and under `/_sim`.

use axum::extract::{Path, State};
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{configurations, free_name, not_found};
use crate::envelope::Refusal;
use crate::simulator::Simulator;
use crate::state::{Connector, Tunnel};

/// A connector opens that many connections (seen live).
const CONNECTIONS: usize = 4;

/// What a connector does when it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It says so: its connections are gone at once.
    Cleanly,
    /// It vanishes: its connections linger.
    WithoutAWord,
}

impl Simulator {
    /// Every tunnel of an account, deleted ones too, by id, each as the API shows it, with its configuration under
    /// `configuration`.
    pub fn tunnels(&self, account_id: &str) -> Vec<Value> {
        self.with(|core| {
            let now = core.config.clock.now();
            let tunnels = core.world.held().tunnels.values();
            let tunnels = tunnels.filter(|tunnel| tunnel.account_id == account_id);
            tunnels
                .map(|tunnel| {
                    let mut shown = tunnel.render_with_connections(now);
                    shown.insert("configuration".to_owned(), tunnel.render_configuration());
                    Value::Object(shown)
                })
                .collect()
        })
    }

    /// The token of a tunnel, as a connector would be given it. `None`: there is no such tunnel, or it is deleted.
    pub fn tunnel_token(&self, tunnel_id: &str) -> Option<String> {
        self.with(|core| {
            let tunnel = core.world.held().tunnels.get(tunnel_id);
            tunnel.filter(|it| it.is_live()).map(|it| it.token())
        })
    }

    /// A connector connects; the answer is its id.
    pub fn connect_tunnel(&self, tunnel_id: &str) -> Result<String, Refusal> {
        let mut id = String::new();
        self.change_tunnel(tunnel_id, |tunnel, world, now| {
            id = world.new_uuid();
            tunnel.settle(now);
            tunnel.active_at.get_or_insert(now);
            tunnel.connectors.push(Connector {
                id: id.clone(),
                connections: (0..CONNECTIONS).map(|_| world.new_uuid()).collect(),
                run_at: now,
                vanished_at: None,
            });
            Ok(())
        })?;
        Ok(id)
    }

    /// A connector stops, and tells so. Tells whether it was there.
    pub fn disconnect_tunnel(&self, tunnel_id: &str, connector_id: &str) -> Result<bool, Refusal> {
        self.stop_connector(tunnel_id, connector_id, Stop::Cleanly)
    }

    /// A connector vanishes without a word: Cloudflare shows its connections for some minutes more. Tells whether it was
    /// there.
    pub fn lose_connector(&self, tunnel_id: &str, connector_id: &str) -> Result<bool, Refusal> {
        self.stop_connector(tunnel_id, connector_id, Stop::WithoutAWord)
    }

    fn stop_connector(&self, tunnel_id: &str, connector_id: &str, how: Stop) -> Result<bool, Refusal> {
        let mut found = false;
        self.change_tunnel(tunnel_id, |tunnel, _, now| {
            found = tunnel.connectors.iter().any(|it| it.id == connector_id);
            match how {
                Stop::Cleanly => tunnel.connectors.retain(|it| it.id != connector_id),
                Stop::WithoutAWord => {
                    let gone = tunnel.connectors.iter_mut().find(|it| it.id == connector_id);
                    if let Some(gone) = gone {
                        gone.vanished_at.get_or_insert(now);
                    }
                }
            }
            tunnel.note_loss(now);
            Ok(())
        })?;
        Ok(found)
    }

    /// Deletes a tunnel as somebody else would, connected or not.
    pub fn foreign_delete_tunnel(&self, tunnel_id: &str) -> Result<(), Refusal> {
        self.change_tunnel(tunnel_id, |tunnel, _, now| {
            tunnel.connectors.clear();
            tunnel.note_loss(now);
            tunnel.deleted_at = Some(now);
            Ok(())
        })
    }

    /// Renames a tunnel as somebody else would.
    pub fn foreign_rename_tunnel(&self, tunnel_id: &str, name: &str) -> Result<(), Refusal> {
        self.change_tunnel(tunnel_id, |tunnel, world, _| {
            name.clone_into(&mut tunnel.name);
            free_name(world, &tunnel.account_id, name, Some(&tunnel.id))
        })
    }

    /// Gives a tunnel a new secret, and so a new token, as somebody else would.
    pub fn foreign_rotate_tunnel(&self, tunnel_id: &str) -> Result<(), Refusal> {
        self.change_tunnel(tunnel_id, |tunnel, world, _| {
            tunnel.secret = super::drawn_secret(world);
            Ok(())
        })
    }

    /// Replaces the configuration of a tunnel as somebody else would.
    pub fn foreign_configure_tunnel(&self, tunnel_id: &str, config: &Map<String, Value>) -> Result<(), Refusal> {
        self.change_tunnel(tunnel_id, |tunnel, _, now| {
            configurations::replace(tunnel, config.clone(), now)
        })
    }

    fn change_tunnel(
        &self,
        tunnel_id: &str,
        change: impl FnOnce(&mut Tunnel, &mut crate::state::World, jiff::Timestamp) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.with(|core| {
            let now = core.config.clock.now();
            let tunnel = core.world.held().tunnels.get(tunnel_id).filter(|it| it.is_live());
            let mut tunnel = Tunnel::clone(tunnel.ok_or_else(not_found)?);
            change(&mut tunnel, &mut core.world, now)?;
            core.world.put_tunnel(tunnel, now);
            Ok(())
        })
    }
}

/// The part of the control API that is about tunnels.
pub(crate) fn control() -> Router<Simulator> {
    Router::new()
        .route("/accounts/{account}/tunnels", get(tunnels))
        .route("/tunnels/{tunnel}", delete(delete_tunnel))
        .route("/tunnels/{tunnel}/configuration", put(configure))
        .route("/tunnels/{tunnel}/connectors", post(connect))
        .route("/tunnels/{tunnel}/connectors/{connector}", delete(disconnect))
        .route("/tunnels/{tunnel}/connectors/{connector}/vanish", post(lose))
}

async fn tunnels(State(sim): State<Simulator>, Path(account): Path<String>) -> Json<Value> {
    Json(json!({ "tunnels": sim.tunnels(&account) }))
}

async fn delete_tunnel(State(sim): State<Simulator>, Path(tunnel): Path<String>) -> Result<StatusCode, Refusal> {
    sim.foreign_delete_tunnel(&tunnel).map(|()| StatusCode::NO_CONTENT)
}

async fn configure(
    State(sim): State<Simulator>,
    Path(tunnel): Path<String>,
    Json(config): Json<Map<String, Value>>,
) -> Result<StatusCode, Refusal> {
    sim.foreign_configure_tunnel(&tunnel, &config)
        .map(|()| StatusCode::NO_CONTENT)
}

async fn connect(State(sim): State<Simulator>, Path(tunnel): Path<String>) -> Result<Json<Value>, Refusal> {
    sim.connect_tunnel(&tunnel).map(|id| Json(json!({ "id": id })))
}

fn found_or_not(found: bool) -> StatusCode {
    if found {
        StatusCode::NO_CONTENT
    } else {
        StatusCode::NOT_FOUND
    }
}

async fn disconnect(
    State(sim): State<Simulator>,
    Path((tunnel, connector)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    sim.disconnect_tunnel(&tunnel, &connector).map(found_or_not)
}

async fn lose(
    State(sim): State<Simulator>,
    Path((tunnel, connector)): Path<(String, String)>,
) -> Result<StatusCode, Refusal> {
    sim.lose_connector(&tunnel, &connector).map(found_or_not)
}
