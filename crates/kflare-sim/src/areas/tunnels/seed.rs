//! Tunnels that are there from the start.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{configurations, free_name, new};
use crate::envelope::Refusal;
use crate::ids::is_uuid;
use crate::state::{ConfigSource, World};

/// A tunnel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunnelSeed {
    /// A UUID in lower case; unset: drawn from the simulator's seed.
    #[serde(default)]
    pub id: Option<String>,
    /// The tunnel's name.
    pub name: String,
    /// The account it is in, by id or name.
    pub account: String,
    /// Where its configuration is kept; unset: `local`, as for a create.
    #[serde(default)]
    pub config_src: ConfigSource,
    /// Its first configuration. It is checked as the API would.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
}

impl TunnelSeed {
    /// A tunnel whose configuration is kept at Cloudflare.
    pub fn named(name: &str, account: &str) -> Self {
        Self {
            name: name.to_owned(),
            account: account.to_owned(),
            config_src: ConfigSource::Cloudflare,
            ..Self::default()
        }
    }

    /// Adds the tunnel and returns its id.
    pub(crate) fn apply(&self, world: &mut World, account_id: String, now: Timestamp) -> Result<String, Refusal> {
        let id = match &self.id {
            Some(id) if is_uuid(id) => id.clone(),
            Some(id) => return Err(Refusal::new(400, 1001, format!("{id:?} is no UUID"))),
            None => world.new_uuid(),
        };
        free_name(world, &account_id, &self.name, None)?;
        let mut tunnel = new(
            world,
            id.clone(),
            account_id,
            self.name.clone(),
            self.config_src,
            None,
            now,
        );
        if let Some(config) = &self.config {
            configurations::replace(&mut tunnel, config.clone(), now)?;
        }
        world.put_tunnel(tunnel, now);
        Ok(id)
    }
}
