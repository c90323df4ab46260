//! How often Cloudflare was called.

use std::time::Duration;

use crate::story::perform::Stage;
use crate::story::rule::Rule;

/// Cloudflare's window, and what it allows in one.
const WINDOW: Duration = Duration::from_mins(5);
const CALLS_A_WINDOW: usize = 1200;

/// Checks how often Cloudflare was called.
pub fn budget(stage: &Stage) {
    let calls = stage.ledger.calls();
    for cluster in 0..stage.clusters.len() {
        let prefix = format!("c{cluster}-");
        let times: Vec<Duration> = calls
            .iter()
            .filter(|it| it.life.starts_with(&prefix))
            .map(|it| it.at)
            .collect();
        for (first, at) in times.iter().enumerate() {
            let within = times[first..].iter().take_while(|it| **it < *at + WINDOW).count();
            if within > CALLS_A_WINDOW {
                stage.ledger.broken(
                    Rule::Budget,
                    format!("cluster {cluster} made {within} calls within five minutes"),
                );
                break;
            }
        }
    }
    let second = Duration::from_secs(1);
    let rotations = stage.ledger.rotations();
    for refused in &calls {
        let Some((at, 429, Some(seconds))) = refused.answer else {
            continue;
        };
        let until = at + Duration::from_secs(seconds.saturating_sub(1));
        let replaced = rotations.iter().any(|rotation| *rotation <= until);
        let early = calls
            .iter()
            .find(|it| it.life == refused.life && it.at > at + second && it.at < until);
        if let Some(early) = early.filter(|_| !replaced) {
            let what = format!(
                "{} was told at {at:?} to wait {seconds} s, and called at {:?}",
                early.life, early.at
            );
            stage.ledger.broken(Rule::Budget, what);
        }
    }
}
