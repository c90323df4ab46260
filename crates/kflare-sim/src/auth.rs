//! Who calls, and what they may do.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;

use crate::envelope::{ApiError, Refusal};
use crate::route::Params;
use crate::state::{Grant, Owner, Permission, Token, World, Zone};

/// What a route asks of its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Access {
    /// Any caller; the handler shows each what they may see.
    Anyone,
    /// Any permission on the account in the path.
    AnyOnAccount,
    /// A permission on the account in the path.
    Account(Permission),
    /// A permission on the zone in the path.
    Zone(Permission),
    /// Any permission on the zone in the path.
    AnyOnZone,
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The id of the token; none for a user's global key.
    pub(crate) token_id: Option<String>,
    /// Whose call budget is used.
    pub(crate) budget: String,
    pub(crate) owner: Owner,
    /// The accounts the owner reaches.
    accounts: Vec<String>,
    /// `None`: everything, as a global key may.
    grants: Option<Vec<Grant>>,
}

impl Caller {
    fn reaches(&self, account: &str) -> bool {
        self.accounts.iter().any(|id| id == account)
    }

    fn any_grant(&self, test: impl Fn(&Grant) -> bool) -> bool {
        self.grants.as_ref().is_none_or(|grants| grants.iter().any(test))
    }

    /// Whether the account shows at all: zone permissions do not show it.
    pub(crate) fn sees_account(&self, account: &str) -> bool {
        self.reaches(account)
            && self.any_grant(|grant| grant.permission.area.is_of_accounts() && grant.covers_account(account))
    }

    pub(crate) fn may_on_account(&self, wanted: Permission, account: &str) -> bool {
        self.reaches(account) && self.any_grant(|grant| grant.allows(wanted) && grant.covers_account(account))
    }

    pub(crate) fn may_on_zone(&self, wanted: Permission, zone: &Zone) -> bool {
        self.reaches(&zone.account_id)
            && self.any_grant(|grant| grant.allows(wanted) && grant.covers_zone(&zone.account_id, &zone.id, &zone.name))
    }

    /// Whether the zone shows: any permission on it will do.
    pub(crate) fn sees_zone(&self, zone: &Zone) -> bool {
        self.reaches(&zone.account_id)
            && self.any_grant(|grant| {
                !grant.permission.area.is_of_accounts() && grant.covers_zone(&zone.account_id, &zone.id, &zone.name)
            })
    }

    /// Whether a permission holds for more than single zones.
    pub(crate) fn may_beyond_single_zones(&self, wanted: Permission) -> bool {
        self.any_grant(|grant| {
            grant.allows(wanted) && self.accounts.iter().any(|account| grant.covers_account(account))
        })
    }

    /// Whether a permission holds for anything.
    pub(crate) fn may_somewhere(&self, wanted: Permission) -> bool {
        self.any_grant(|grant| grant.allows(wanted))
    }
}

/// What the headers say, before it is known whether it is any good.
enum Presented<'a> {
    Token(&'a str),
    Key { email: &'a str, key: &'a str },
}

/// What a caller is authenticated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To use the API: the token has to work.
    Use,
    /// To hear about the token itself: it has to exist.
    Verify,
}

/// Finds the caller.
pub(crate) fn authenticate(
    world: &World,
    headers: &HeaderMap,
    purpose: Purpose,
    now: Timestamp,
) -> Result<Caller, Refusal> {
    match presented(headers)? {
        Presented::Token(value) => {
            let token = world.held().tokens.values().find(|token| token.value == value);
            match (token, purpose) {
                (Some(token), Purpose::Use) if token.works_at(now) => Ok(caller_of(world, token)),
                (Some(token), Purpose::Verify) => Ok(caller_of(world, token)),
                (_, Purpose::Use) => Err(invalid_token()),
                (None, Purpose::Verify) => Err(crate::areas::tokens::invalid()),
            }
        }
        Presented::Key { email, key } => {
            let user = world.held().users.values().find(|user| user.email == email);
            let user = user
                .filter(|user| user.api_key.as_deref() == Some(key))
                .ok_or_else(|| Refusal::new(403, 9103, "Unknown X-Auth-Key or X-Auth-Email"))?;
            Ok(Caller {
                token_id: None,
                budget: format!("user/{}", user.id),
                owner: Owner::User(user.id.clone()),
                accounts: user.accounts.clone(),
                grants: None,
            })
        }
    }
}

/// Checks that a caller may use a route.
pub(crate) fn authorize(world: &World, caller: &Caller, access: Access, params: &Params) -> Result<(), Refusal> {
    let allowed = match access {
        Access::Anyone => return Ok(()),
        Access::AnyOnAccount => {
            return if caller.sees_account(params.get("account_id")) {
                Ok(())
            } else {
                Err(unauthorized())
            };
        }
        Access::Account(wanted) => caller.may_on_account(wanted, params.get("account_id")),
        Access::Zone(wanted) => {
            let Some(zone) = world.zone(params.get("zone_id")) else {
                return Err(unknown_zone(wanted));
            };
            caller.may_on_zone(wanted, zone)
        }
        Access::AnyOnZone => {
            let zone = world
                .zone(params.get("zone_id"))
                .ok_or_else(crate::areas::zones::unknown)?;
            return if caller.sees_zone(zone) {
                Ok(())
            } else {
                Err(unauthorized())
            };
        }
    };
    match (allowed, access) {
        (true, _) => Ok(()),
        (false, Access::Account(wanted) | Access::Zone(wanted)) if !is_core(wanted) => Err(forbidden()),
        (false, _) => Err(unauthorized()),
    }
}

/// Zones and accounts themselves refuse with 9109, most products with 10000.
fn is_core(wanted: Permission) -> bool {
    matches!(wanted.area, crate::state::Area::Account | crate::state::Area::Zone)
}

fn unknown_zone(wanted: Permission) -> Refusal {
    if is_core(wanted) {
        crate::areas::zones::unknown()
    } else {
        Refusal::new(404, 1003, "Invalid or missing zone id.")
    }
}

/// No permission for a zone or account.
pub(crate) fn unauthorized() -> Refusal {
    Refusal::new(403, 9109, "Unauthorized to access requested resource")
}

/// No permission for anything else.
fn forbidden() -> Refusal {
    Refusal::new(403, 10_000, "Authentication error")
}

fn invalid_token() -> Refusal {
    Refusal::new(401, 10_000, "Authentication error")
}

fn caller_of(world: &World, token: &Token) -> Caller {
    let (budget, accounts) = match &token.owner {
        Owner::User(id) => {
            let accounts = world.held().users.get(id).map(|user| user.accounts.clone());
            (format!("user/{id}"), accounts.unwrap_or_default())
        }
        Owner::Account(id) => (format!("token/{}", token.id), vec![id.clone()]),
    };
    Caller {
        token_id: Some(token.id.clone()),
        budget,
        owner: token.owner.clone(),
        accounts,
        grants: Some(token.grants.clone()),
    }
}

fn presented(headers: &HeaderMap) -> Result<Presented<'_>, Refusal> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let token = value
            .to_str()
            .ok()
            .and_then(|text| text.strip_prefix("Bearer "))
            .filter(|token| is_token68(token));
        return token.map(Presented::Token).ok_or_else(|| {
            let mut error = ApiError::new(6003, "Invalid request headers");
            error
                .error_chain
                .push(ApiError::new(6111, "Invalid format for Authorization header"));
            Refusal {
                status: 400,
                errors: vec![error],
            }
        });
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (text("x-auth-email"), text("x-auth-key")) {
        (Some(email), Some(key)) => Ok(Presented::Key { email, key }),
        _ => Err(Refusal::new(
            400,
            9106,
            "Missing X-Auth-Key, X-Auth-Email or Authorization headers",
        )),
    }
}

/// The alphabet of RFC 9110's token68.
fn is_token68(token: &str) -> bool {
    let body = token.trim_end_matches('=');
    !body.is_empty()
        && body
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/'))
}
