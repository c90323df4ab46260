//! How a simulator is set up.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::RateLimit;
use crate::clock::{Clock, SystemClock};

/// What a [`Simulator`](crate::Simulator) is made of.
#[derive(Clone)]
pub struct SimConfig {
    /// Ids, latencies and fault probabilities follow from this number and from the order of the calls.
    pub seed: u64,
    /// The simulator's time.
    pub clock: Arc<dyn Clock>,
    /// The pause between the effect of a call and its answer.
    pub latency: Latency,
    /// The call budget of each principal; `None` switches it off.
    pub rate_limit: Option<RateLimit>,
    /// What a dropped connection looks like, unless the fault says otherwise.
    pub dropped: Dropped,
    /// When a pending zone becomes active.
    pub activation: Activation,
    /// How long a downgrade of a zone's plan stays pending.
    pub billing_period: Duration,
    /// How long operations on the items of a list take.
    pub bulk_operations: BulkOperations,
    /// Which of several forms, each seen at Cloudflare, answers take.
    pub quirks: Quirks,
    /// How far back a stale list can look.
    pub history: Duration,
    /// How many calls the log keeps; older ones are forgotten, the counts stay.
    pub call_log_limit: usize,
}

impl std::fmt::Debug for SimConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimConfig")
            .field("seed", &self.seed)
            .field("latency", &self.latency)
            .finish_non_exhaustive()
    }
}

impl Default for SimConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            clock: Arc::new(SystemClock::new()),
            latency: Latency::default(),
            rate_limit: Some(RateLimit::default()),
            dropped: Dropped::Hang,
            activation: Activation::default(),
            billing_period: Duration::from_hours(30 * 24),
            bulk_operations: BulkOperations::default(),
            quirks: Quirks::default(),
            history: Duration::from_hours(1),
            call_log_limit: 100_000,
        }
    }
}

/// The pause before each answer: between `min` and `max`, drawn from the seed. Never below one millisecond: without a pause
/// a virtual clock never moves and a caller that loops spins for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    min: Duration,
    max: Duration,
}

impl Latency {
    /// The shortest pause.
    pub const FLOOR: Duration = Duration::from_millis(1);

    /// Always the same pause, at least [`Latency::FLOOR`].
    pub fn fixed(pause: Duration) -> Self {
        Self::between(pause, pause)
    }

    /// A pause between the two, both at least [`Latency::FLOOR`]; the order of the arguments does not matter.
    pub fn between(one: Duration, other: Duration) -> Self {
        Self {
            min: one.min(other).max(Self::FLOOR),
            max: one.max(other).max(Self::FLOOR),
        }
    }

    /// The shortest and the longest pause.
    pub fn bounds(self) -> (Duration, Duration) {
        (self.min, self.max)
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::fixed(Self::FLOOR)
    }
}

/// What the caller sees of a dropped connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dropped {
    /// No answer, ever: the caller has to time out.
    Hang,
    /// The connection is closed without an answer (over HTTP/2 the stream is reset).
    Reset,
}

/// When pending zones become active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// This long after their creation; `None`: never by themselves.
    pub after: Option<Duration>,
    /// Whether an activation check finds the name servers in place.
    pub on_check: CheckOutcome,
}

impl Default for Activation {
    fn default() -> Self {
        Self {
            after: None,
            on_check: CheckOutcome::Activates,
        }
    }
}

/// What an activation check does to a pending zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// The zone becomes active at once.
    Activates,
    /// The zone stays pending.
    StaysPending,
}

/// How long an operation on the items of a list takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkOperations {
    /// How long it is `pending` once its turn has come.
    pub pending: Duration,
    /// How long it is `running` then.
    pub running: Duration,
}

impl Default for BulkOperations {
    fn default() -> Self {
        Self {
            pending: Duration::from_millis(500),
            running: Duration::from_millis(1_500),
        }
    }
}

/// Forms of answers that differ between accounts, ages of records and versions of the API. Clients have to cope with all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// How TXT content is answered.
    pub txt: TxtForm,
    /// How per-record settings that are all off are answered.
    pub settings: SettingsForm,
    /// How the flags of a CAA record are answered.
    pub caa_flags: FlagsForm,
    /// How the parameters of SVCB and HTTPS records are answered.
    pub svcb_params: ParamsForm,
    /// How refusals of DNS records are wrapped.
    pub dns_errors: DnsErrorForm,
    /// How the location of a bucket is answered.
    pub r2_location: LocationForm,
    /// How lifecycle rules of buckets are answered.
    pub r2_lifecycle: LifecycleForm,
    /// How the logging of rules is answered.
    pub rule_logging: RuleLoggingForm,
    /// How the query strings of a cache key are answered.
    pub query_strings: QueryStringForm,
    /// What becomes of a write of list items while another one of the account is under way.
    pub list_writes: ListWrites,
    /// How the items of a list are answered.
    pub list_items: ListItemForm,
    /// The order in which the bindings of a Worker are answered.
    pub worker_bindings: BindingOrder,
}

/// Forms of TXT content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TxtForm {
    /// Presentation form: quoted strings of at most 255 bytes.
    #[default]
    Quoted,
    /// The text itself; text that cannot stand alone (it holds quotes) is quoted all the same.
    Bare,
    /// Quoted if it was sent quoted, else bare.
    AsSent,
}

/// Forms of `settings` without a true value. An unproxied CNAME never has any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingsForm {
    /// `{}`.
    #[default]
    Empty,
    /// Each setting as `false`.
    False,
    /// `null`.
    Null,
    /// No key at all.
    Absent,
}

/// Forms of CAA flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlagsForm {
    /// `0`.
    #[default]
    Integer,
    /// `0.0`.
    Float,
    /// `"0"`.
    String,
}

/// Forms of SVCB parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParamsForm {
    /// As they were sent.
    #[default]
    AsSent,
    /// Sorted by key, every value in quotes.
    SortedQuoted,
}

/// Forms of DNS validation errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DnsErrorForm {
    /// 1004 "DNS Validation Error" outside, the cause in `error_chain`.
    #[default]
    Chained,
    /// The cause itself, as Cloudflare announced for the end of 2024.
    Direct,
}

/// Forms of a bucket's location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocationForm {
    /// `weur`, as it is sent and documented.
    #[default]
    Lower,
    /// `WEUR`, as some answers have it.
    Upper,
}

/// Forms of lifecycle rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LifecycleForm {
    /// As they were sent.
    #[default]
    AsSent,
    /// With empty transitions in the place of those that were not sent.
    Padded,
}

/// Forms of the logging of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleLoggingForm {
    /// A rule that skips always has it, on where it was not sent.
    #[default]
    Filled,
    /// Only where it is on.
    Sparse,
}

/// Forms of the query strings of a cache key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryStringForm {
    /// As they were sent: `{"list": [...]}` or `{"all": true}`.
    #[default]
    AsSent,
    /// A bare list, in which `"*"` means all.
    Bare,
}

/// What becomes of a write of list items while another one is under way. Cloudflare documents both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListWrites {
    /// Refused with 429 while any operation of the account has not ended (the newer documents).
    #[default]
    Refused,
    /// Queued, first in, first out for each list (the older ones).
    Queued,
}

/// Forms of the items of a list of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListItemForm {
    /// With what they have.
    #[default]
    Plain,
    /// With an empty `hostname`, `redirect` and `comment` too, as Terraform's provider had to cope with.
    Padded,
}

/// Orders of a Worker's bindings. Cloudflare promises none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BindingOrder {
    /// As they were uploaded (seen live).
    #[default]
    AsSent,
    /// By name.
    Sorted,
    /// By name, last first.
    Reversed,
}
