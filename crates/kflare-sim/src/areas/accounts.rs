//! `/accounts`.

use serde_json::{Value, json};

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes};
use crate::route::{Answers, Call, Route};
use crate::state::{Account, AccountType};
use crate::time::micros;

pub(crate) static ROUTES: [Route; 2] = [
    Route {
        method: "GET",
        template: "/accounts",
        access: Access::Anyone,
        answers: Answers::List,
        policy: Policy::DEFAULT,
        handler: list,
    },
    Route {
        method: "GET",
        template: "/accounts/{account_id}",
        access: Access::AnyOnAccount,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler: get,
    },
];

const SIZES: PageSizes = PageSizes {
    default: 20,
    min: 5,
    max: 50,
};

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let page = Page::from_query(call.query, SIZES)?;
    let name = call.query.get("name");
    let mut accounts: Vec<&Account> = call
        .world
        .held()
        .accounts
        .values()
        .filter(|account| call.caller.sees_account(&account.id))
        .filter(|account| name.is_none_or(|name| account.name.eq_ignore_ascii_case(name)))
        .collect();
    accounts.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
    if call.query.get("direction") == Some("desc") {
        accounts.reverse();
    }
    let items = page.cut(&accounts).iter().map(|account| render(account)).collect();
    Ok(Reply::page(&page, accounts.len(), items))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let account = call.world.held().accounts.get(call.param("account_id"));
    account
        .map(|account| Reply::object(render(account)))
        .ok_or_else(crate::auth::unauthorized)
}

fn render(account: &Account) -> Value {
    let kind = match account.kind {
        AccountType::Standard => "standard",
        AccountType::Enterprise => "enterprise",
    };
    json!({
        "id": account.id,
        "name": account.name,
        "type": kind,
        "settings": { "enforce_twofactor": false, "abuse_contact_email": null },
        "created_on": micros(account.created_on),
    })
}
