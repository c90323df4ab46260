//! The wire between one controller process and the world. Every call crosses it: there it is counted, and can be lost on
//! either side of its effect, held up or cut off.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::Mutex;
use std::time::Instant;

use axum::response::Response;
use tokio::sync::watch;

use super::point::{Call, Moment, Plane, Point, template};

/// Where a call gets stuck, and what with it.
#[derive(Clone, Debug)]
pub struct Trap {
    /// At which call.
    pub aim: Aim,
    /// On which side of its effect.
    pub moment: Moment,
    /// What gets stuck.
    pub grip: Grip,
}

/// The call that a trap is for. It snaps once.
#[derive(Clone, Debug)]
pub enum Aim {
    /// This one.
    At(Call),
    /// The first that may change something.
    FirstWrite,
    /// The first that may change something at Cloudflare.
    FirstWriteToCloudflare,
}

/// What a trap holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grip {
    /// Everything: nothing that the process does reaches anybody any more, it is as good as dead.
    Process,
    /// The call alone, until it is released.
    Call,
}

impl Trap {
    /// The end of a process.
    pub fn fatal(point: &Point) -> Self {
        Self {
            aim: Aim::At(point.call.clone()),
            moment: point.moment,
            grip: Grip::Process,
        }
    }

    fn is_for(&self, call: &Call) -> bool {
        match &self.aim {
            Aim::At(wanted) => wanted == call,
            Aim::FirstWrite => call.method != "GET",
            Aim::FirstWriteToCloudflare => call.plane == Plane::Cloudflare && call.method != "GET",
        }
    }
}

/// What becomes of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// They pass.
    Open,
    /// They wait, and their answers too, as on a network that drops everything.
    Blocked,
}

/// What happened to the watches that were open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severed {
    /// Nothing yet.
    No,
    /// Their connections broke.
    Cut,
    /// Nothing comes any more, and nobody says so.
    Silent,
}

/// A call that has crossed, or is crossing.
#[derive(Clone, Debug)]
pub struct Crossing {
    /// The call.
    pub call: Call,
    /// When it arrived.
    pub arrived: Instant,
    /// The status of its answer, once there is one.
    pub status: Option<u16>,
}

#[derive(Default)]
struct State {
    crossings: Vec<Crossing>,
    seen: BTreeMap<(Plane, String, String), usize>,
    trap: Option<Trap>,
    /// How many more watches get no answer.
    swallow: usize,
    watches: usize,
}

/// See the module.
pub struct Wire {
    /// The name in paths that stands for the tenant.
    tenant: String,
    state: Mutex<State>,
    sprung: watch::Sender<bool>,
    released: watch::Sender<bool>,
    kubernetes: watch::Sender<Flow>,
    cloudflare: watch::Sender<Flow>,
    severed: watch::Sender<Severed>,
}

impl Wire {
    /// A wire on which everything passes until a call reaches `trap`.
    pub fn new(tenant: &str, trap: Option<Trap>) -> Self {
        Self {
            tenant: tenant.to_owned(),
            state: Mutex::new(State {
                trap,
                ..State::default()
            }),
            sprung: watch::Sender::new(false),
            released: watch::Sender::new(false),
            kubernetes: watch::Sender::new(Flow::Open),
            cloudflare: watch::Sender::new(Flow::Open),
            severed: watch::Sender::new(Severed::No),
        }
    }

    /// Carries a call that counts, by `deliver`.
    pub async fn carry(
        &self,
        plane: Plane,
        method: &str,
        path: &str,
        deliver: impl Future<Output = Response>,
    ) -> Response {
        self.open(plane).await;
        let (index, trap) = self.arrives(plane, method, path);
        let held = trap.map(|trap| (trap.moment, trap.grip));
        if let Some((Moment::Before, grip)) = held {
            self.hold(grip).await;
        }
        let answer = deliver.await;
        self.state.lock().unwrap().crossings[index].status = Some(answer.status().as_u16());
        if let Some((Moment::After, grip)) = held {
            self.hold(grip).await;
        }
        self.open(plane).await;
        answer
    }

    /// Carries a call that does not count: a read of the API server, a Lease, an Event.
    pub async fn pass(&self, plane: Plane, deliver: impl Future<Output = Response>) -> Response {
        self.open(plane).await;
        let answer = deliver.await;
        self.open(plane).await;
        answer
    }

    fn arrives(&self, plane: Plane, method: &str, path: &str) -> (usize, Option<Trap>) {
        let path = template(path, &self.tenant);
        let mut state = self.state.lock().unwrap();
        let seen = state.seen.entry((plane, method.to_owned(), path.clone())).or_default();
        *seen += 1;
        let call = Call {
            plane,
            method: method.to_owned(),
            path,
            nth: *seen,
        };
        let trapped = state.trap.take_if(|trap| trap.is_for(&call));
        state.crossings.push(Crossing {
            call,
            arrived: Instant::now(),
            status: None,
        });
        (state.crossings.len() - 1, trapped)
    }

    /// Holds a call that has reached the trap.
    async fn hold(&self, grip: Grip) {
        if grip == Grip::Process {
            self.block(Plane::Kubernetes);
            self.block(Plane::Cloudflare);
        }
        self.sprung.send_replace(true);
        match grip {
            Grip::Process => pending().await,
            Grip::Call => drop(self.released.subscribe().wait_for(|released| *released).await.unwrap()),
        }
    }

    /// Lets the call in the trap go on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Waits until a call has reached the trap.
    pub async fn sprung(&self) {
        self.sprung.subscribe().wait_for(|sprung| *sprung).await.unwrap();
    }

    /// Whether a call has reached the trap.
    pub fn has_sprung(&self) -> bool {
        *self.sprung.borrow()
    }

    fn flow(&self, plane: Plane) -> &watch::Sender<Flow> {
        match plane {
            Plane::Kubernetes => &self.kubernetes,
            Plane::Cloudflare => &self.cloudflare,
        }
    }

    async fn open(&self, plane: Plane) {
        let mut flow = self.flow(plane).subscribe();
        flow.wait_for(|flow| *flow == Flow::Open).await.unwrap();
    }

    /// Loses the way to one side. Connections stay open, and nothing comes.
    pub fn block(&self, plane: Plane) {
        self.flow(plane).send_replace(Flow::Blocked);
        if plane == Plane::Kubernetes {
            self.sever(Severed::Silent);
        }
    }

    /// Does this to all watches that are open now.
    pub fn sever(&self, how: Severed) {
        self.severed.send_replace(how);
    }

    /// What a watch looks at while it is open: a change concerns it.
    pub fn severances(&self) -> watch::Receiver<Severed> {
        self.severed.subscribe()
    }

    /// Leaves the next `count` requests for a watch without an answer.
    pub fn swallow_watches(&self, count: usize) {
        self.state.lock().unwrap().swallow = count;
    }

    /// Notes a request for a watch; tells whether it gets an answer.
    pub fn watch_answered(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.watches += 1;
        let swallowed = state.swallow > 0;
        state.swallow = state.swallow.saturating_sub(1);
        !swallowed
    }

    /// How many watches have been asked for.
    pub fn watches(&self) -> usize {
        self.state.lock().unwrap().watches
    }

    /// The calls that counted, in the order in which they arrived.
    pub fn crossings(&self) -> Vec<Crossing> {
        self.state.lock().unwrap().crossings.clone()
    }

    /// The calls, for a person.
    pub fn told(&self) -> String {
        let mut told = String::new();
        for crossing in self.crossings() {
            let status = crossing.status.map_or("no answer".to_owned(), |it| it.to_string());
            let _ = writeln!(told, "  {} -> {status}", crossing.call);
        }
        told
    }
}
