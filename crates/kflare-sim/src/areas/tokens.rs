//! Verifying tokens.

use serde_json::{Map, json};

use crate::auth::{Access, Purpose};
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::route::{Answers, Call, Route};
use crate::state::{Owner, TokenStatus};
use crate::time::seconds;

pub(crate) static ROUTES: [Route; 2] = [
    Route {
        method: "GET",
        template: "/user/tokens/verify",
        access: Access::Anyone,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler: verify_users,
    },
    Route {
        method: "GET",
        template: "/accounts/{account_id}/tokens/verify",
        access: Access::Anyone,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler: verify_accounts,
    },
];

/// What a caller of `route` is authenticated for.
pub(crate) fn purpose(route: &Route) -> Purpose {
    if ROUTES.iter().any(|verify| std::ptr::eq(verify, route)) {
        Purpose::Verify
    } else {
        Purpose::Use
    }
}

/// A token that is none, or that belongs to the other endpoint.
pub(crate) fn invalid() -> Refusal {
    Refusal::new(401, 1000, "Invalid API Token")
}

fn verify_users(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match call.caller.owner {
        Owner::User(_) => verify(call),
        Owner::Account(_) => Err(invalid()),
    }
}

fn verify_accounts(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    match &call.caller.owner {
        Owner::Account(account) if account == call.param("account_id") => verify(call),
        _ => Err(invalid()),
    }
}

fn verify(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let id = call.caller.token_id.as_ref().ok_or_else(invalid)?;
    let token = call.world.held().tokens.get(id).ok_or_else(invalid)?;
    let status = token.status_at(call.now);
    let mut result = Map::new();
    result.insert("id".into(), json!(token.id));
    result.insert("status".into(), json!(status));
    if let Some(at) = token.not_before {
        result.insert("not_before".into(), json!(seconds(at)));
    }
    if let Some(at) = token.expires_on {
        result.insert("expires_on".into(), json!(seconds(at)));
    }
    let reply = Reply::object(result.into());
    Ok(match status {
        TokenStatus::Active => {
            let text = "This API Token is valid and active";
            reply.with_message(json!({ "code": 10_000, "message": text, "type": null }))
        }
        TokenStatus::Disabled | TokenStatus::Expired => reply,
    })
}
