//! `/zones/{zone_id}/dns_records`.

mod batch;
mod data;
mod draft;
mod error;
mod export;
mod kind;
mod list;
pub(crate) mod name;
mod record;
mod txt;
mod write;

pub use kind::RecordType;
pub(crate) use record::Record;
pub(crate) use write::{Change, Managed, Quota, Writer};

use serde_json::{Value, json};

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::route::{Answers, Call, Route};
use crate::state::{Area, Permission, Zone};

const READ: Access = Access::Zone(Permission::read(Area::Dns));
const WRITE: Access = Access::Zone(Permission::write(Area::Dns));

pub(crate) static ROUTES: [Route; 8] = [
    route("GET", "/zones/{zone_id}/dns_records", READ, Answers::List, list::list),
    route("POST", "/zones/{zone_id}/dns_records", WRITE, Answers::Other, create),
    route(
        "POST",
        "/zones/{zone_id}/dns_records/batch",
        WRITE,
        Answers::Other,
        batch::batch,
    ),
    route(
        "GET",
        "/zones/{zone_id}/dns_records/export",
        READ,
        Answers::Other,
        export::export,
    ),
    route(
        "GET",
        "/zones/{zone_id}/dns_records/{dns_record_id}",
        READ,
        Answers::Other,
        get,
    ),
    route(
        "PUT",
        "/zones/{zone_id}/dns_records/{dns_record_id}",
        WRITE,
        Answers::Other,
        put,
    ),
    route(
        "PATCH",
        "/zones/{zone_id}/dns_records/{dns_record_id}",
        WRITE,
        Answers::Other,
        patch,
    ),
    route(
        "DELETE",
        "/zones/{zone_id}/dns_records/{dns_record_id}",
        WRITE,
        Answers::Other,
        delete,
    ),
];

const fn route(
    method: &'static str,
    template: &'static str,
    access: Access,
    answers: Answers,
    handler: crate::route::Handler,
) -> Route {
    Route {
        method,
        template,
        access,
        answers,
        policy: Policy::DEFAULT,
        handler,
    }
}

/// Does `work` with the zone of the call.
fn with_writer<T>(call: &mut Call<'_>, work: impl FnOnce(&mut Writer<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let zone: Zone = call.zone()?;
    let mut writer = Writer {
        world: call.world,
        zone: &zone,
        quirks: call.quirks,
        now: call.now,
        managed: Managed::Protected,
    };
    work(&mut writer)
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let record = with_writer(call, |writer| writer.create(&body, Quota::Enforced))?;
    Ok(Reply::object(record.render(call.quirks)))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let set = call.world.record_set(call.param("zone_id"));
    let record = set
        .and_then(|set| set.get(call.param("dns_record_id")))
        .ok_or_else(error::no_record)?;
    Ok(Reply::object(record.render(call.quirks)))
}

fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    change(call, Change::Overwrite)
}

fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    change(call, Change::Merge)
}

fn change(call: &mut Call<'_>, change: Change) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let id = call.param("dns_record_id").to_owned();
    let record = with_writer(call, |writer| writer.change(&id, &body, change))?;
    Ok(Reply::object(record.render(call.quirks)))
}

fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let id = call.param("dns_record_id").to_owned();
    let record = with_writer(call, |writer| writer.delete(&id))?;
    Ok(Reply::object(json!({ "id": record.id })))
}

/// Records as the API shows them.
fn render_all(records: &[Record], call: &Call<'_>) -> Value {
    records.iter().map(|record| record.render(call.quirks)).collect()
}
