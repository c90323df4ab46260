//! Workers, their routes, and what they may bind.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{SeedError, find_account};
use crate::areas::worker_routes;
use crate::areas::workers::{Inherit, Module, Upload, deploy};
use crate::state::World;

/// A Worker: the upload that would make it. It is checked as the API does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerSeed {
    /// The account it is in.
    pub account: String,
    /// Its name.
    pub name: String,
    /// The metadata of the upload: `main_module`, `bindings` and so on.
    pub metadata: Map<String, Value>,
    /// Its code.
    pub modules: Vec<ModuleSeed>,
}

/// One part of a Worker's code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleSeed {
    /// Its name.
    pub name: String,
    /// Its content type, such as `application/javascript+module`.
    #[serde(rename = "type")]
    pub content_type: String,
    /// The content, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Any other content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
}

/// A route of a zone to a Worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerRouteSeed {
    /// The zone, by id or name.
    pub zone: String,
    /// Which URLs.
    pub pattern: String,
    /// The Worker; unset: none runs there.
    #[serde(default)]
    pub script: Option<String>,
}

/// Something that Workers may bind and that the simulator does not model itself, such as a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindableSeed {
    /// The account it is in.
    pub account: String,
    /// The type of binding, such as `queue`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What the binding names: an id or a name.
    pub id: String,
}

impl WorkerSeed {
    /// A Worker of one ES module, `index.js`, without bindings.
    pub fn of_module(account: &str, name: &str, text: &str) -> Self {
        let mut metadata = Map::new();
        metadata.insert("main_module".to_owned(), "index.js".into());
        Self {
            account: account.to_owned(),
            name: name.to_owned(),
            metadata,
            modules: vec![ModuleSeed {
                name: "index.js".to_owned(),
                content_type: "application/javascript+module".to_owned(),
                text: Some(text.to_owned()),
                base64: None,
            }],
        }
    }

    pub(super) fn apply(&self, world: &mut World, now: Timestamp) -> Result<String, SeedError> {
        let account = find_account(world, &self.account, &self.name)?;
        let modules = self.modules.iter().map(ModuleSeed::module).collect::<Result<_, _>>()?;
        let upload = Upload {
            metadata: self.metadata.clone(),
            modules,
        };
        deploy(world, &account, &self.name, upload, Inherit::Strict, now)
            .map(|script| script.tag.clone())
            .map_err(|source| SeedError::Worker {
                name: self.name.clone(),
                source,
            })
    }
}

impl ModuleSeed {
    fn module(&self) -> Result<Module, SeedError> {
        let body = match (&self.text, &self.base64) {
            (Some(text), None) => Some(Bytes::from(text.clone())),
            (None, Some(text)) => STANDARD.decode(text).ok().map(Bytes::from),
            _ => None,
        };
        Ok(Module {
            name: self.name.clone(),
            content_type: self.content_type.clone(),
            body: body.ok_or_else(|| SeedError::Module(self.name.clone()))?,
        })
    }
}

impl WorkerRouteSeed {
    pub(super) fn apply(&self, world: &mut World, now: Timestamp) -> Result<String, SeedError> {
        let zone = world.find_zone(&self.zone).ok_or_else(|| SeedError::Missing {
            referrer: format!("route {:?}", self.pattern),
            kind: "zone",
            name: self.zone.clone(),
        })?;
        let zone = crate::state::Zone::clone(zone);
        let refused = |source| SeedError::Worker {
            name: self.pattern.clone(),
            source,
        };
        worker_routes::check(world, &zone, &self.pattern, self.script.as_deref(), None).map_err(refused)?;
        let id = world.new_id();
        let route = crate::state::WorkerRoute {
            id: id.clone(),
            pattern: self.pattern.clone(),
            script: self.script.clone(),
        };
        world.put_worker_route(&zone.id, route, now);
        Ok(id)
    }
}

impl BindableSeed {
    pub(super) fn apply(&self, world: &mut World, now: Timestamp) -> Result<(), SeedError> {
        let account = find_account(world, &self.account, &self.id)?;
        world.administer(now, |held| held.workers.add_bindable(&account, &self.kind, &self.id));
        Ok(())
    }
}
