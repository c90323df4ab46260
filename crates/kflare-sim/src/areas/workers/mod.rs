//! `/accounts/{account_id}/workers/scripts`: Workers, their settings, schedules and secrets.

mod binding;
mod code;
mod module;
mod multipart;
mod schedule;
mod script;
mod secret;
mod settings;
mod subdomain;
mod upload;

use std::sync::Arc;

pub(crate) use binding::senders;
pub(crate) use module::Module;
pub(crate) use script::{revealed, shown};
pub(crate) use upload::{Inherit, Upload, deploy};

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::Refusal;
use crate::route::{Answers, Call, Handler, Route};
use crate::state::{Area, Permission, Script};

const READ: Access = Access::Account(Permission::read(Area::WorkersScripts));
const WRITE: Access = Access::Account(Permission::write(Area::WorkersScripts));

pub(crate) static ROUTES: [Route; 16] = [
    Route {
        answers: Answers::List,
        ..route("GET", "/accounts/{account_id}/workers/scripts", READ, script::list)
    },
    Route {
        policy: Policy::WORKERS_SCRIPT_UPLOAD,
        ..route("PUT", SCRIPT, WRITE, upload::put)
    },
    route("GET", SCRIPT, READ, code::download),
    Route {
        policy: Policy::WORKERS_SCRIPT_MODIFY,
        ..route("DELETE", SCRIPT, WRITE, script::delete)
    },
    route(
        "GET",
        "/accounts/{account_id}/workers/scripts/{script_name}/content/v2",
        READ,
        code::content,
    ),
    route("GET", SETTINGS, READ, settings::get),
    route("PATCH", SETTINGS, WRITE, settings::patch),
    route("GET", SCHEDULES, READ, schedule::get),
    route("PUT", SCHEDULES, WRITE, schedule::put),
    route("GET", SUBDOMAIN, READ, subdomain::get),
    Route {
        policy: Policy::WORKERS_ROUTE_UPDATE,
        ..route("POST", SUBDOMAIN, WRITE, subdomain::post)
    },
    route("DELETE", SUBDOMAIN, WRITE, subdomain::delete),
    Route {
        answers: Answers::List,
        ..route("GET", SECRETS, READ, secret::list)
    },
    route("PUT", SECRETS, WRITE, secret::put),
    route("GET", SECRET, READ, secret::get),
    route("DELETE", SECRET, WRITE, secret::delete),
];

const SCRIPT: &str = "/accounts/{account_id}/workers/scripts/{script_name}";
const SETTINGS: &str = "/accounts/{account_id}/workers/scripts/{script_name}/settings";
const SCHEDULES: &str = "/accounts/{account_id}/workers/scripts/{script_name}/schedules";
const SUBDOMAIN: &str = "/accounts/{account_id}/workers/scripts/{script_name}/subdomain";
const SECRETS: &str = "/accounts/{account_id}/workers/scripts/{script_name}/secrets";
const SECRET: &str = "/accounts/{account_id}/workers/scripts/{script_name}/secrets/{secret_name}";

const fn route(method: &'static str, template: &'static str, access: Access, handler: Handler) -> Route {
    Route {
        method,
        template,
        access,
        answers: Answers::Other,
        policy: Policy::DEFAULT,
        handler,
    }
}

/// Seen live on settings.
fn missing() -> Refusal {
    Refusal::new(404, 10_007, "This Worker does not exist on your account.")
}

/// The code is documented for many faults of an upload.
fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::new(400, 10_021, text)
}

/// The Worker in the path.
fn named(call: &Call<'_>) -> Result<Arc<Script>, Refusal> {
    call.world
        .script(call.param("account_id"), call.param("script_name"))
        .cloned()
        .ok_or_else(missing)
}

/// Changes the Worker in the path without a new version.
fn change(call: &mut Call<'_>, change: impl FnOnce(&mut Script)) -> Result<Arc<Script>, Refusal> {
    let mut script = Script::clone(&*named(call)?);
    change(&mut script);
    call.world.put_script(script, call.now);
    named(call)
}

/// Changes the Worker in the path, which makes a new version of it.
fn new_version(call: &mut Call<'_>, change: impl FnOnce(&mut Script)) -> Result<Arc<Script>, Refusal> {
    let (version, now) = (call.world.new_id(), call.now);
    self::change(call, |script| {
        change(script);
        script.version = version;
        script.modified_on = now;
    })
}
