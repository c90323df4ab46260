//! What goes wrong in a story.

use kflare_api::names;
use kflare_sim::{Dropped, Fault, FaultMatch, FaultSpec, Totals};
use rand::{Rng, SeedableRng, rngs::StdRng, seq::IndexedRandom};

use super::{Author, SECOND};
use crate::story::act::{Act, ApiFault, Cut, KillPoint, Setting, Step};
use crate::story::perform::KINDS;

impl Author {
    pub(super) fn faults(&mut self) {
        for _ in 0..self.rng.random_range(0..7) {
            let at = self.early();
            let for_ms = self.rng.random_range(1..180) * SECOND;
            let cluster = self.rng.random_range(0..self.setting.clusters);
            let act = match self.rng.random_range(0..10) {
                0..=4 => Act::CloudflareFails {
                    fault: cloudflare_fault(&mut self.rng),
                    for_ms,
                },
                5 => Act::CloudflareOutage { for_ms },
                6 | 7 => Act::ApiFails {
                    cluster,
                    how: *API_FAULTS.choose(&mut self.rng).unwrap_or(&ApiFault::ServerError),
                    percent: self.rng.random_range(5..60),
                    for_ms,
                },
                8 => Act::CutWatches {
                    cluster,
                    resource: match KINDS.get(self.rng.random_range(0..=KINDS.len())) {
                        Some(plural) => format!("{plural}.{}", names::GROUP),
                        None => "secrets".to_owned(),
                    },
                    cut: *CUTS.choose(&mut self.rng).unwrap_or(&Cut::Clean),
                },
                _ => Act::Compact { cluster },
            };
            self.at(at, act);
        }
    }

    pub(super) fn kills(&mut self) {
        for _ in 0..self.rng.random_range(0..6) {
            let at = self.early();
            let cluster = self.rng.random_range(0..self.setting.clusters);
            let replica = self.rng.random_range(0..self.setting.replicas);
            let down_ms = self.rng.random_range(0..40_000);
            let when = match self.rng.random_range(0..8) {
                0 => KillPoint::Now,
                1..=2 => KillPoint::BeforeRequest(self.rng.random_range(1..80)),
                3..=5 => KillPoint::AfterRequest(self.rng.random_range(1..80)),
                _ => KillPoint::AtPoll(self.rng.random_range(1..600)),
            };
            let act = match self.rng.random_range(0..10) {
                0 => Act::Restart {
                    cluster,
                    replica,
                    down_ms,
                },
                1 | 2 if self.setting.lease => Act::Isolate {
                    cluster,
                    replica,
                    for_ms: self.rng.random_range(1..40) * SECOND,
                },
                _ => Act::Kill {
                    cluster,
                    replica,
                    when,
                    down_ms,
                },
            };
            self.at(at, act);
        }
    }
}

/// In one story of five, deletes that are overtaken by the first finalizer. They have a source of chance of their own, so that
/// everything else stays as it is.
pub(super) fn overtaken_deletes(seed: u64, setting: &Setting) -> Option<Step> {
    let mut rng = StdRng::seed_from_u64(seed ^ 0x006f_7665_7274_616b);
    if !rng.random_bool(0.2) {
        return None;
    }
    let act = Act::ApiFails {
        cluster: rng.random_range(0..setting.clusters),
        how: ApiFault::OvertakesDelete,
        percent: rng.random_range(5..60),
        for_ms: rng.random_range(1..180) * SECOND,
    };
    let at_ms = rng.random_range(0..20 * SECOND);
    Some(Step { at_ms, act })
}

const CUTS: [Cut; 4] = [Cut::Clean, Cut::HalfLine, Cut::Reset, Cut::Gone];
const API_FAULTS: [ApiFault; 7] = [
    ApiFault::ServerError,
    ApiFault::TooManyRequests,
    ApiFault::Conflict,
    ApiFault::LostRequest,
    ApiFault::LostReply,
    ApiFault::BrokenReply,
    ApiFault::Slow,
];

const RECORDS: &str = "/zones/{zone_id}/dns_records";

fn cloudflare_fault(rng: &mut StdRng) -> FaultSpec {
    let dropped = [Some(Dropped::Hang), Some(Dropped::Reset)][rng.random_range(0..2)];
    let fault = match rng.random_range(0..13) {
        0 => Fault::RateLimited {
            retry_after: Some(rng.random_range(1..120)),
        },
        1 => Fault::RateLimited { retry_after: None },
        2 => Fault::Status {
            status: 500,
            code: 10_000,
            message: "Internal error".to_owned(),
        },
        3 => Fault::Status {
            status: 503,
            code: 10_001,
            message: "Service unavailable".to_owned(),
        },
        4 => Fault::Html {
            status: 502,
            body: "<html>bad gateway</html>".to_owned(),
        },
        5 => Fault::Delay {
            ms: rng.random_range(1..60_000),
        },
        6 => Fault::DropBefore { dropped },
        7 | 8 => Fault::DropAfter { dropped },
        9 => Fault::Truncate {
            bytes: rng.random_range(0..300),
        },
        10 => Fault::StaleList {
            seconds: Some(rng.random_range(1..600)),
            mark: None,
        },
        11 => Fault::EmptyList {
            totals: [Totals::Zero, Totals::True][rng.random_range(0..2)],
        },
        _ => Fault::Html {
            status: 200,
            body: "{\"success\": tr".to_owned(),
        },
    };
    let matches = match rng.random_range(0..6) {
        0 => FaultMatch::route("POST", RECORDS),
        1 => FaultMatch::route("POST", "/zones/{zone_id}/dns_records/batch"),
        2 => FaultMatch::route("GET", RECORDS),
        3 => FaultMatch::path("DELETE", "."),
        _ => FaultMatch::any(),
    };
    let spec = FaultSpec::new(matches, fault);
    match rng.random_range(0..3) {
        0 => spec.times(rng.random_range(1..4)).skip(rng.random_range(0..4)),
        1 => spec,
        _ => spec.probability(f64::from(rng.random_range(5..80)) / 100.0),
    }
}
