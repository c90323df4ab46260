//! Calls that somebody else makes: without token, budget or log, with every permission.

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::auth::Caller;
use crate::envelope::{Refusal, Reply, ReplyBody};
use crate::paging::Query;
use crate::route::{self, Call, Found};
use crate::simulator::Simulator;

impl Simulator {
    /// Makes a call as somebody else would, past permissions, budgets, faults and the log. `path` is what follows
    /// `/client/v4`. The answer is the `result`, or null where that is no JSON.
    pub fn foreign_call(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Result<Value, Refusal> {
        let nothing = || Refusal::new(404, 7003, format!("{method} {path} is no route that is modelled"));
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        let segments = route::segments(&format!("{}{path}", route::BASE)).ok_or_else(nothing)?;
        let Found::Route(route, params) = route::find(method, &segments) else {
            return Err(nothing());
        };
        let content_type = content_type.parse().map_err(|_| nothing())?;
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type)]);
        let reply = self.with(|core| {
            let accounts = core.world.held().accounts.keys().cloned().collect();
            (route.handler)(&mut Call {
                world: &mut core.world,
                params: &params,
                query: &Query::parse(query),
                headers: &headers,
                body,
                caller: &Caller::owner_of(accounts),
                quirks: core.config.quirks,
                activation: core.config.activation,
                billing_period: core.config.billing_period,
                now: core.config.clock.now(),
                view: None,
            })
        })?;
        Ok(match reply {
            Reply {
                body: ReplyBody::Result { result, .. },
                ..
            } => result,
            _ => Value::Null,
        })
    }

    /// The Workers of an account (by id or name), as lists show them, by name.
    pub fn workers(&self, account: &str) -> Vec<Value> {
        self.with(|core| {
            let id = core.world.find_account(account).unwrap_or_default();
            let scripts = core.world.scripts(&id, None);
            scripts
                .iter()
                .map(|script| crate::areas::workers::shown(script))
                .collect()
        })
    }

    /// Everything that is held of a Worker, code and secret texts included. `None`: there is no such account or Worker.
    pub fn worker(&self, account: &str, name: &str) -> Option<Value> {
        self.with(|core| {
            let id = core.world.find_account(account)?;
            let script = core.world.script(&id, name)?;
            Some(crate::areas::workers::revealed(script))
        })
    }
}
