//! What the scenarios stand on: a world, tenants who apply things in it, and ways to wait and to count.

use std::time::Duration;

use kflare_api::{CloudflareAccount, DNSRecord, names};
use kflare_sim::CallRecord;
use serde_json::{Value, json};

use crate::life::Life;
use crate::memory_api::{ObjectId, RequestRecord};
use crate::simulation::{ControllerOptions, User, World};

/// A scenario did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Something did not come about.
    #[error("{what} within {within:?} of virtual time; {left} are left, the first is {first}")]
    NotInTime {
        /// What was waited for.
        what: &'static str,
        /// How long.
        within: Duration,
        /// How many are not there yet.
        left: usize,
        /// One of them, with its state.
        first: String,
    },
    /// What came about is not what was to be measured.
    #[error("{0}")]
    NotAsMeant(String),
}

/// A world with its user.
pub(super) struct Stand {
    pub world: World,
    pub user: User,
}

/// A moment from which to count.
pub(super) struct Mark {
    call: u64,
    request: u64,
}

/// What happened since a [`Mark`].
pub(super) struct Since {
    /// All calls to Cloudflare.
    pub calls: Vec<CallRecord>,
    /// Writes to Kubernetes, Events and Leases left out.
    pub kubernetes_writes: Vec<RequestRecord>,
}

impl Since {
    /// Writes to either side.
    pub fn writes(&self) -> usize {
        self.kubernetes_writes.len() + self.calls.iter().filter(|call| call.method != "GET").count()
    }

    /// Calls about records.
    pub fn record_calls(&self) -> usize {
        self.calls
            .iter()
            .filter(|call| call.path.contains("/dns_records"))
            .count()
    }
}

/// A zone resource: a namespace of its own, and its domain.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub namespace: String,
    pub zone: String,
    pub domain: String,
}

impl Place {
    /// The zone's resource, which adopts the zone that is there.
    pub fn zone_manifest(&self) -> Value {
        json!({
            "apiVersion": names::API_VERSION, "kind": "Zone",
            "metadata": {
                "name": self.zone, "namespace": self.namespace,
                "annotations": { names::ADOPTION_POLICY: "adopt" },
            },
            "spec": { "name": self.domain, "accountRef": { "name": "main" }, "type": "full" },
        })
    }

    /// An A record named like its resource.
    pub fn record_manifest(&self, name: &str) -> Value {
        json!({
            "apiVersion": names::API_VERSION, "kind": "DNSRecord",
            "metadata": { "name": format!("{}-{name}", self.zone), "namespace": self.namespace },
            "spec": { "zoneRef": { "name": self.zone }, "name": name, "type": "A", "content": "192.0.2.1" },
        })
    }

    pub fn record_id(&self, name: &str) -> ObjectId {
        ObjectId::namespaced::<DNSRecord>(&self.namespace, &format!("{}-{name}", self.zone))
    }
}

/// The account of every world.
pub(super) fn account_id() -> ObjectId {
    ObjectId::cluster::<CloudflareAccount>("main")
}

impl Stand {
    pub fn new(world: World) -> Self {
        Self {
            user: world.user(),
            world,
        }
    }

    /// Starts a controller with these options.
    pub fn start(&self, name: &str, options: ControllerOptions) -> Life {
        let life = Life::new(name);
        let (world, running) = (self.world.clone(), life.clone());
        tokio::spawn(async move { world.run_controller(&running, options).await });
        life
    }

    /// Applies an object.
    pub fn apply(&self, manifest: Value) -> Result<ObjectId, BenchError> {
        let id = ObjectId::of(&manifest);
        match self.world.api.create(manifest) {
            Ok(_) => Ok(id),
            Err(status) => Err(BenchError::NotAsMeant(format!("{id} was refused: {}", status.message))),
        }
    }

    /// Applies records `r0`, `r1`, ... of a place.
    pub fn apply_records(&self, place: &Place, count: usize) -> Result<Vec<ObjectId>, BenchError> {
        (0..count)
            .map(|n| self.apply(place.record_manifest(&format!("r{n}"))))
            .collect()
    }

    /// Waits until all are Ready for their specs, and says how long that took.
    pub async fn ready(&self, ids: &[ObjectId], step: Duration, within: Duration) -> Result<Duration, BenchError> {
        let began = self.now();
        let mut left: Vec<&ObjectId> = ids.iter().collect();
        loop {
            // What is Ready stays so here; so most looks end at the first that is not.
            while left.last().is_some_and(|id| self.user.is_ready(id)) {
                left.pop();
            }
            if left.is_empty() {
                return Ok(self.elapsed_since(began));
            }
            if self.elapsed_since(began) > within {
                left.retain(|id| !self.user.is_ready(id));
                let first = left.first().map(|id| self.state_of(id)).unwrap_or_default();
                return Err(BenchError::NotInTime {
                    what: "not all were Ready",
                    within,
                    left: left.len(),
                    first,
                });
            }
            self.world.pass_time(step).await;
        }
    }

    fn state_of(&self, id: &ObjectId) -> String {
        let object = self.world.api.get(id).unwrap_or_default();
        format!("{id}: {}", object["status"]["conditions"])
    }

    /// Virtual time since the beginning.
    pub fn now(&self) -> Duration {
        self.world.api.clock().elapsed()
    }

    /// Virtual time since a moment that [`Self::now`] gave.
    pub fn elapsed_since(&self, began: Duration) -> Duration {
        self.now().saturating_sub(began)
    }

    pub fn mark(&self) -> Mark {
        Mark {
            call: self.world.cloudflare.calls().last().map_or(0, |call| call.sequence),
            request: self.world.api.request_count(),
        }
    }

    pub fn since(&self, mark: &Mark) -> Since {
        let mut kubernetes_writes = self.world.api.requests();
        kubernetes_writes.retain(|it| {
            it.number > mark.request
                && it.request.writes()
                && it.request.resource != "events.events.k8s.io"
                && it.request.resource != "leases.coordination.k8s.io"
        });
        Since {
            calls: self.world.cloudflare.calls_since(mark.call),
            kubernetes_writes,
        }
    }
}
