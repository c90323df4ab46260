//! What the book sees of each call: what it was, what it changed, how it was answered.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Request, Response};

use super::{Call, Ledger, Maker, Write};
use crate::life::Life;
use crate::sim_transport::Witness;
use crate::story::holdings::Holdings;
use crate::story::identity::text;
use crate::story::rule::Rule;
use crate::story::{lists, rulesets, transforms};

impl Witness for Ledger {
    fn before(&self, life: &Life, number: u64, request: &Request<Bytes>) {
        let call = Call {
            at: self.now(),
            life: life.name().to_owned(),
            reads: request.method() == Method::GET,
            items_of: lists::items_of(request),
            answer: None,
        };
        self.check_operation(&call);
        self.book().calls.insert(number, call);
        if request.method() != Method::GET {
            let before = self.holdings();
            self.book().before = Some(before);
        }
    }

    fn applied(&self, life: &Life, _number: u64, request: &Request<Bytes>) {
        if request.method() == Method::GET {
            return;
        }
        let before = self.book().before.take().unwrap_or_default();
        let after = self.holdings();
        if let Some(cluster) = cluster_of(life.name()) {
            self.saw(cluster, life, request.uri().path(), &before, &after);
        }
    }

    fn answered(&self, _life: &Life, number: u64, response: &Response<Bytes>) {
        let now = self.now();
        let retry_after = response.headers().get(http::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|it| it.to_str().ok()?.parse().ok());
        let mut book = self.book();
        let Some(call) = book.calls.get_mut(&number) else {
            return;
        };
        call.answer = Some((now, response.status().as_u16(), retry_after));
        let accepted = call.items_of.clone().zip(lists::operation_of(response));
        let life = call.life.clone();
        if let Some((list, operation)) = accepted {
            book.operations.insert((life, list), operation);
        }
    }
}

impl Ledger {
    fn saw(&self, cluster: usize, life: &Life, path: &str, before: &Holdings, after: &Holdings) {
        let zones_gone = before
            .zones
            .keys()
            .filter(|id| !after.zones.contains_key(*id))
            .cloned()
            .collect::<BTreeSet<_>>();
        let mut touched = Vec::new();
        for (old, new) in before.beside(after) {
            let ids: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for id in ids {
                let (was, is) = (old.get(id), new.get(id));
                let went_with_its_zone =
                    is.is_none() && was.is_some_and(|it| zones_gone.contains(&text(&it["zone_id"])));
                let went_with_its_worker = is.is_none() && was.is_some_and(|it| after.leads_nowhere(it));
                // With a zone come its managed transforms, all off.
                let came_with_its_zone = was.is_none() && is.is_some_and(transforms::are_off);
                if was != is && !went_with_its_zone && !went_with_its_worker && !came_with_its_zone {
                    touched.push((
                        id.clone(),
                        was.cloned().unwrap_or_default(),
                        is.cloned().unwrap_or_default(),
                    ));
                }
            }
        }
        for movers in after.rules.moved(&before.rules) {
            // Of two that changed places the order does not say which one it was.
            let meant = movers.iter().find(|id| path.ends_with(id.as_str()));
            let ours = movers.iter().find(|id| self.maker(id) == Some(Maker::Cluster(cluster)));
            let Some(mover) = meant.or(ours).or(movers.first()) else {
                self.broken(
                    Rule::Foreign,
                    format!("{} put more than one rule elsewhere", life.name()),
                );
                continue;
            };
            let placed = |rules: &rulesets::Rules| {
                let mut rule = rules.all.get(mover).cloned().unwrap_or_default();
                rule["position"] = rules.place(mover).into();
                rule
            };
            touched.push((mover.clone(), placed(&before.rules), placed(&after.rules)));
        }
        if touched.is_empty() {
            return;
        }
        self.check_leader(cluster, life);
        for (id, was, is) in touched {
            let at = self.now();
            let write = Write {
                at,
                before: was.clone(),
                after: is.clone(),
            };
            self.book().writes.entry(cluster).or_default().push(write);
            if was.is_null() || transforms::are_off(&was) {
                let mut book = self.book();
                book.makers.insert(id.clone(), Maker::Cluster(cluster));
                // Managed transforms that others have turned off are nobody's.
                book.foreign.remove(&id);
                book.made_by.insert(id.clone(), (life.name().to_owned(), at));
            }
            self.check(cluster, life, &id, &was, &is);
        }
    }

    /// Items are not changed again by who knows that a change of them is under way.
    pub(super) fn check_operation(&self, call: &Call) {
        let known = call.items_of.clone().and_then(|list| {
            let book = self.book();
            book.operations.get(&(call.life.clone(), list)).cloned()
        });
        if let (Some(operation), Some(world)) = (known, self.clusters.first())
            && lists::is_under_way(&world.cloudflare, &operation)
        {
            let what = format!("{} changes items while operation {operation} is under way", call.life);
            self.broken(Rule::Operations, what);
        }
    }
}

fn cluster_of(life: &str) -> Option<usize> {
    life.strip_prefix('c')?.split('-').next()?.parse().ok()
}
