//! Listing the rulesets of a zone: those of Cloudflare, then those of the zone, by id.

use serde_json::{Map, Value, json};

use super::managed::MANAGED;
use super::phase::Phase;
use crate::envelope::{Refusal, Reply, ReplyBody};
use crate::paging::{Page, PageSizes};
use crate::route::Call;
use crate::state::{Level, Permission, Zone};
use crate::time::micros;

/// Rows of a page; the default is unproven.
const SIZES: PageSizes = PageSizes {
    default: 50,
    min: 1,
    max: 50,
};

pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = super::zone_of(call)?;
    super::allow_any(call, &zone, Level::Read)?;
    let size = usize::try_from(Page::from_query(call.query, SIZES)?.size).unwrap_or(usize::MAX);
    let rows = rows(call, &zone);
    let start = match call.query.get("cursor") {
        None => 0,
        Some(cursor) => rows
            .iter()
            .position(|row| row["id"] == cursor)
            .map(|at| at + 1)
            // The code is unproven.
            .ok_or_else(|| Refusal::new(400, 6003, "Invalid query parameter: cursor"))?,
    };
    let end = start.saturating_add(size).min(rows.len());
    let mut cursors = Map::new();
    if end < rows.len() {
        cursors.insert("after".to_owned(), rows[end - 1]["id"].clone());
    }
    let page: Vec<Value> = rows[start..end].to_vec();
    let mut info = Map::new();
    info.insert("count".to_owned(), json!(page.len()));
    info.insert("cursors".to_owned(), Value::Object(cursors));
    Ok(Reply {
        status: 200,
        body: ReplyBody::Result {
            result: Value::Array(page),
            messages: Some(Vec::new()),
            info: Some(info),
        },
        retry_after: None,
    })
}

/// What the caller may see. Whether Cloudflare leaves out the phases that a token has no permission for is unproven.
fn rows(call: &Call<'_>, zone: &Zone) -> Vec<Value> {
    let managed = MANAGED
        .iter()
        .filter(|managed| managed.is_in(zone.plan))
        .map(|managed| {
            json!({
                "id": managed.id,
                "name": managed.name,
                "description": managed.description,
                "kind": "managed",
                "version": "1",
                "last_updated": micros(zone.created_on),
                "phase": managed.phase,
            })
        });
    let may_read = |phase: Phase| {
        let wanted = Permission {
            area: phase.area(),
            level: Level::Read,
        };
        call.caller.may_on_zone(wanted, zone)
    };
    let own = call.world.rulesets(&zone.id, call.view);
    let own = own
        .iter()
        .filter(|ruleset| may_read(ruleset.phase))
        .map(|ruleset| Value::Object(ruleset.summary()));
    managed.chain(own).collect()
}
