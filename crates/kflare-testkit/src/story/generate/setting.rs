//! What the world of a story is like.

use kflare_sim::Plan;
use rand::{Rng, rngs::StdRng, seq::IndexedRandom};

use super::DOMAINS;
use crate::story::act::Setting;

pub(super) fn setting(rng: &mut StdRng) -> Setting {
    let clusters = if rng.random_bool(0.25) { 2 } else { 1 };
    let replicas = if rng.random_bool(0.3) { 2 } else { 1 };
    let existing_zones = DOMAINS
        .iter()
        .filter(|_| rng.random_bool(0.4))
        .map(|it| (*it).to_owned())
        .collect();
    let pick = |rng: &mut StdRng| rng.random_range(0..3);
    Setting {
        clusters,
        replicas,
        lease: replicas > 1 || rng.random_bool(0.3),
        drift_minutes: rng.random_range(2..15),
        existing_zones,
        plan: *[Plan::Free, Plan::Pro, Plan::Enterprise]
            .choose(rng)
            .unwrap_or(&Plan::Free),
        txt: [
            kflare_sim::TxtForm::Quoted,
            kflare_sim::TxtForm::Bare,
            kflare_sim::TxtForm::AsSent,
        ][pick(rng)],
        settings: [
            kflare_sim::SettingsForm::Empty,
            kflare_sim::SettingsForm::False,
            kflare_sim::SettingsForm::Null,
        ][pick(rng)],
        caa_flags: [
            kflare_sim::FlagsForm::Integer,
            kflare_sim::FlagsForm::Float,
            kflare_sim::FlagsForm::String,
        ][pick(rng)],
        svcb_params: [kflare_sim::ParamsForm::AsSent, kflare_sim::ParamsForm::SortedQuoted][pick(rng) / 2],
        event_delay_ms: *[5, 200, 5000].choose(rng).unwrap_or(&5),
        latency_ms: *[30, 200, 3000].choose(rng).unwrap_or(&200),
        restless_watches: rng.random_bool(0.2),
        account_token: rng.random_bool(0.5),
    }
}
