//! What can happen in a story: what users do in the cluster, what others do in the account, and what breaks.

mod edits;
mod mishaps;

use std::fmt;

use kflare_sim::{FlagsForm, ParamsForm, Phase, Plan, Quirks, SettingsForm, TxtForm};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use edits::{InputKind, ListEdit, RuleEdit};
pub use mishaps::{ApiFault, Cut, KillPoint};

/// A world, and what happens in it. Data: it can be shrunk, stored and played again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Story {
    /// What all chance while it is played is drawn from.
    pub seed: u64,
    /// What the world is like.
    pub setting: Setting,
    /// What happens, in order of time.
    pub steps: Vec<Step>,
    /// What users do at the very end, after everything has settled: what it leads to must be what `kflare plan` shows.
    pub encore: Vec<Act>,
}

/// What a world is like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Kubernetes clusters that share the Cloudflare account: 1 or 2.
    pub clusters: usize,
    /// Replicas of the controller in each cluster: 1 or 2.
    pub replicas: usize,
    /// Whether they contend for a lease. Two replicas always do.
    pub lease: bool,
    /// `--drift-check-interval`, in minutes.
    pub drift_minutes: u64,
    /// Domains that are zones of the account from the start, made by somebody else.
    pub existing_zones: Vec<String>,
    /// The plan they are on.
    pub plan: Plan,
    /// Forms of Cloudflare's answers.
    pub txt: TxtForm,
    /// See [`Quirks`].
    pub settings: SettingsForm,
    /// See [`Quirks`].
    pub caa_flags: FlagsForm,
    /// See [`Quirks`].
    pub svcb_params: ParamsForm,
    /// The longest an event takes to its watch, in milliseconds.
    pub event_delay_ms: u64,
    /// The longest an answer of Cloudflare's takes, in milliseconds.
    pub latency_ms: u64,
    /// Whether watches end by themselves every few minutes, in all ways in which watches end.
    pub restless_watches: bool,
    /// Whether the token belongs to the account; else to a user.
    pub account_token: bool,
}

impl Setting {
    /// Forms of Cloudflare's answers.
    pub fn quirks(&self) -> Quirks {
        Quirks {
            txt: self.txt,
            settings: self.settings,
            caa_flags: self.caa_flags,
            svcb_params: self.svcb_params,
            ..Quirks::default()
        }
    }
}

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Milliseconds since the beginning.
    pub at_ms: u64,
    /// What.
    pub act: Act,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum Act {
    /// A user creates a resource.
    Create {
        /// In which cluster.
        cluster: usize,
        /// The manifest.
        manifest: Value,
    },
    /// A user merges a change into a spec.
    Edit {
        /// In which cluster.
        cluster: usize,
        /// Of what.
        target: Target,
        /// A merge patch for the spec.
        change: Value,
    },
    /// A user sets an annotation or takes it off.
    Annotate {
        /// In which cluster.
        cluster: usize,
        /// Of what.
        target: Target,
        /// Its name.
        annotation: String,
        /// Its value; none takes it off.
        value: Option<String>,
    },
    /// A user sets a label or takes it off, also one that kflare wrote.
    Label {
        /// In which cluster.
        cluster: usize,
        /// Of what.
        target: Target,
        /// Its name.
        label: String,
        /// Its value; none takes it off.
        value: Option<String>,
    },
    /// A user deletes a resource.
    Delete {
        /// In which cluster.
        cluster: usize,
        /// What.
        target: Target,
    },
    /// A new token is made, put into the Secret, and the old one revoked.
    RotateToken {
        /// In which cluster.
        cluster: usize,
        /// How long after that the old one is revoked, in milliseconds.
        grace_ms: u64,
    },
    /// Somebody creates a record in the account.
    ForeignCreate {
        /// The domain.
        zone: String,
        /// The request body.
        body: Value,
    },
    /// Somebody changes a record in the account, whoever made it.
    ForeignPatch {
        /// The domain.
        zone: String,
        /// Which of the zone's records, counted by name, type and content, modulo their number.
        pick: usize,
        /// The request body.
        body: Value,
    },
    /// Somebody deletes a record in the account.
    ForeignDelete {
        /// The domain.
        zone: String,
        /// Which; see [`Act::ForeignPatch`].
        pick: usize,
    },
    /// Somebody deletes a zone with everything in it.
    ForeignDeleteZone {
        /// The domain.
        zone: String,
    },
    /// Somebody makes a call that makes something in the account.
    ForeignCall {
        /// The call.
        call: kflare_sim::ForeignCall,
    },
    /// Somebody changes a KV namespace, a bucket, a database or a queue, whoever made it, or deletes it.
    ForeignMeddling {
        /// Which of them, counted by kind and name, modulo their number.
        pick: usize,
        /// Decides what is done.
        number: u64,
    },
    /// Somebody changes the rules of a phase, whoever made them.
    ForeignRules {
        /// The domain.
        zone: String,
        /// The phase.
        phase: Phase,
        /// How.
        edit: RuleEdit,
    },
    /// Somebody does something to a list, whoever made it.
    ForeignList {
        /// The name of the list.
        name: String,
        /// What.
        edit: ListEdit,
    },
    /// Somebody turns managed transforms on and off.
    ForeignTransforms {
        /// The domain.
        zone: String,
        /// The request body.
        body: Value,
    },
    /// A user writes what a spec reads into a Secret or ConfigMap, or deletes that.
    WriteInput {
        /// In which cluster.
        cluster: usize,
        /// Which of the two.
        kind: InputKind,
        /// Its name.
        name: String,
        /// The key.
        key: String,
        /// The value; none deletes the Secret or ConfigMap.
        value: Option<String>,
    },
    /// Somebody deletes a tunnel.
    ForeignDeleteTunnel {
        /// Its name.
        name: String,
    },
    /// A user writes something else into a Secret that a Tunnel yields.
    SpoilSecret {
        /// In which cluster.
        cluster: usize,
        /// Its name.
        secret: String,
    },
    /// Calls to Cloudflare go wrong for a while.
    CloudflareFails {
        /// How.
        fault: kflare_sim::FaultSpec,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// There is no way to Cloudflare for a while.
    CloudflareOutage {
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// Requests to an API server go wrong for a while.
    ApiFails {
        /// Of which cluster.
        cluster: usize,
        /// How.
        how: ApiFault,
        /// How many in a hundred.
        percent: u8,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// One replica cannot reach the API server for a while; its watches break.
    Isolate {
        /// In which cluster.
        cluster: usize,
        /// Which one.
        replica: usize,
        /// For how long, in milliseconds.
        for_ms: u64,
    },
    /// All open watches of a kind end.
    CutWatches {
        /// In which cluster.
        cluster: usize,
        /// `plural.group`.
        resource: String,
        /// How.
        cut: Cut,
    },
    /// The API server forgets its history: watches that resume have to list again.
    Compact {
        /// In which cluster.
        cluster: usize,
    },
    /// A replica is killed and started again.
    Kill {
        /// In which cluster.
        cluster: usize,
        /// Which one.
        replica: usize,
        /// When.
        when: KillPoint,
        /// How long it is down, in milliseconds.
        down_ms: u64,
    },
    /// A replica is asked to stop and started again.
    Restart {
        /// In which cluster.
        cluster: usize,
        /// Which one.
        replica: usize,
        /// How long it is down, in milliseconds.
        down_ms: u64,
    },
}

/// A resource by kind and name. Namespaced ones are all in one namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Target {
    /// `CloudflareAccount`, `Zone`, `DNSRecord` and so on.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "setting: {:?}", self.setting)?;
        for step in &self.steps {
            writeln!(f, "{:>8}.{:03} s  {}", step.at_ms / 1000, step.at_ms % 1000, step.act)?;
        }
        for act in &self.encore {
            writeln!(f, "      encore  {act}")?;
        }
        Ok(())
    }
}

/// One line: its JSON, which is what stories are stored as.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
