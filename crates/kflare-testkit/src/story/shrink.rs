//! Makes a failing story shorter: fewer acts, fewer faults, a plainer world, as long as the same rule is broken.

use super::act::{Act, Setting, Story};
use super::rule::Rule;

/// The shortest story found that still breaks `rule`, after at most `tries` plays. `breaks` plays one and says what it broke.
pub fn shrink(story: &Story, rule: Rule, tries: usize, mut breaks: impl FnMut(&Story) -> Vec<Rule>) -> Story {
    let mut left = tries;
    let mut fails = |candidate: &Story| {
        if left == 0 {
            return false;
        }
        left -= 1;
        breaks(candidate).contains(&rule)
    };
    let mut best = story.clone();
    let mut without_encore = best.clone();
    without_encore.encore.clear();
    if !best.encore.is_empty() && fails(&without_encore) {
        best = without_encore;
    }
    loop {
        let before = best.steps.len() + best.encore.len();
        drop_steps(&mut best, &mut fails);
        for index in (0..best.encore.len()).rev() {
            let mut candidate = best.clone();
            candidate.encore.remove(index);
            if fails(&candidate) {
                best = candidate;
            }
        }
        for simplify in SIMPLER {
            let mut candidate = best.clone();
            simplify(&mut candidate);
            if candidate != best && fails(&candidate) {
                best = candidate;
            }
        }
        if best.steps.len() + best.encore.len() == before {
            return best;
        }
    }
}

/// Takes out ever smaller runs of steps.
fn drop_steps(best: &mut Story, fails: &mut impl FnMut(&Story) -> bool) {
    let mut run = best.steps.len().div_ceil(2);
    while run > 0 {
        let mut from = 0;
        while from < best.steps.len() {
            let mut candidate = best.clone();
            let to = (from + run).min(candidate.steps.len());
            candidate.steps.drain(from..to);
            if fails(&candidate) {
                *best = candidate;
            } else {
                from += run;
            }
        }
        run /= 2;
    }
}

const SIMPLER: [fn(&mut Story); 5] = [
    |story| {
        story.setting.clusters = 1;
        story.steps.retain(|step| cluster(&step.act) == 0);
        story.encore.retain(|act| cluster(act) == 0);
    },
    |story| {
        story.setting.replicas = 1;
        story.setting.lease = false;
    },
    |story| story.setting.restless_watches = false,
    |story| {
        story.setting.event_delay_ms = 5;
        story.setting.latency_ms = 30;
    },
    |story| {
        let Setting {
            txt,
            settings,
            caa_flags,
            svcb_params,
            ..
        } = &mut story.setting;
        *txt = kflare_sim::TxtForm::default();
        *settings = kflare_sim::SettingsForm::default();
        *caa_flags = kflare_sim::FlagsForm::default();
        *svcb_params = kflare_sim::ParamsForm::default();
    },
];

fn cluster(act: &Act) -> usize {
    match act {
        Act::Create { cluster, .. }
        | Act::Edit { cluster, .. }
        | Act::Annotate { cluster, .. }
        | Act::Label { cluster, .. }
        | Act::Delete { cluster, .. }
        | Act::WriteInput { cluster, .. }
        | Act::SpoilSecret { cluster, .. }
        | Act::RotateToken { cluster, .. }
        | Act::ApiFails { cluster, .. }
        | Act::Isolate { cluster, .. }
        | Act::CutWatches { cluster, .. }
        | Act::Compact { cluster }
        | Act::Kill { cluster, .. }
        | Act::Restart { cluster, .. } => *cluster,
        _ => 0,
    }
}
