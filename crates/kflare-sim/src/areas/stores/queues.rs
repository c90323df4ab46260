//! `/accounts/{account_id}/queues`. Answers as recorded from the live API, unless marked. Messages and consumers are not modelled.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{list_route, route};
use crate::areas::workers::senders;
use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes};
use crate::route::{Call, Route};
use crate::state::{AccountType, Area, Permission, Queue, World};
use crate::time::micros;

const ALL: &str = "/accounts/{account_id}/queues";
const ONE: &str = "/accounts/{account_id}/queues/{queue_id}";
const READ: Access = Access::Account(Permission::read(Area::Queues));
const WRITE: Access = Access::Account(Permission::write(Area::Queues));

pub(crate) static ROUTES: [Route; 6] = [
    list_route(ALL, READ, Policy::SILENT, list),
    route("POST", ALL, WRITE, Policy::SILENT, create),
    route("GET", ONE, READ, Policy::SILENT, get),
    route("PATCH", ONE, WRITE, Policy::SILENT, patch),
    route("PUT", ONE, WRITE, Policy::SILENT, put),
    route("DELETE", ONE, WRITE, Policy::SILENT, delete),
];

/// Only the default was seen.
const SIZES: PageSizes = PageSizes {
    default: 100,
    min: 1,
    max: 100,
};

/// How a queue shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// In the answer to a write.
    Written,
    /// Alone, with who sends to it.
    Single,
    /// In a list: with the same counts (Cloudflare's own client prints them), and without settings (unproven).
    Listed,
}

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let page = Page::from_query(call.query, SIZES)?;
    // By id: the order is not known.
    let mut all: Vec<Arc<Queue>> = call.world.stored_in(call.param("account_id"), call.view);
    // Cloudflare's own client sends one name or several; that only whole names fit is unproven.
    let names: Vec<&str> = call.query.all("name").collect();
    if !names.is_empty() {
        all.retain(|queue| names.contains(&queue.name.as_str()));
    }
    let cut = page.cut(&all).iter();
    let items = cut.map(|queue| render(queue, Shape::Listed, call.world)).collect();
    Ok(Reply::page(&page, all.len(), items).with_null_lists())
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let account = call.param("account_id").to_owned();
    let jurisdiction = match body.get("jurisdiction") {
        None => None,
        Some(Value::String(name)) if ["us", "eu", "fedramp"].contains(&name.as_str()) => Some(name.clone()),
        Some(_) => return Err(not_valid("jurisdiction")),
    };
    let mut queue = Queue {
        jurisdiction,
        ..new(call.world.new_id(), account, name(&body)?, call.now)
    };
    let sent = settings(&body, &queue, call.world)?;
    // The description of the API has no settings here; Cloudflare's own client sends two. A pause is ignored (unproven).
    sent.apply(&mut queue);
    queue.delivery_paused = None;
    add(call.world, queue, call.now).map(Reply::object)
}

/// A queue as it is made.
pub(super) fn new(id: String, account_id: String, name: String, now: Timestamp) -> Queue {
    Queue {
        id,
        account_id,
        name,
        jurisdiction: None,
        delivery_delay: DELAY,
        message_retention_period: RETENTION,
        delivery_paused: None,
        created_on: now,
        modified_on: now,
    }
}

/// Adds a queue, unless its name is taken.
pub(super) fn add(world: &mut World, queue: Queue, now: Timestamp) -> Result<Value, Refusal> {
    name_is_free(world, &queue)?;
    let shown = render(&queue, Shape::Written, world);
    world.put_stored(queue, now);
    Ok(shown)
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    Ok(Reply::object(render(&queue, Shape::Single, call.world)))
}

/// Changes what is sent. Only both settings together were seen to be taken; that one leaves the other alone is documented.
fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    write(call, queue)
}

/// Replaces: settings that are not sent are those of a new queue again.
fn put(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let queue = Queue {
        delivery_delay: DELAY,
        message_retention_period: RETENTION,
        delivery_paused: None,
        ..find(call)?
    };
    write(call, queue)
}

fn write(call: &mut Call<'_>, mut queue: Queue) -> Result<Reply, Refusal> {
    let body = call.json()?;
    if body.contains_key("queue_name") {
        queue.name = name(&body)?;
        name_is_free(call.world, &queue)?;
    }
    settings(&body, &queue, call.world)?.apply(&mut queue);
    queue.modified_on = call.now;
    let shown = render(&queue, Shape::Written, call.world);
    call.world.put_stored(queue, call.now);
    Ok(Reply::object(shown))
}

/// That nothing hinders it, whoever is bound to the queue, is unproven.
fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let queue = find(call)?;
    call.world.remove_stored(&queue, call.now);
    Ok(Reply::object(Value::Null))
}

fn find(call: &Call<'_>) -> Result<Queue, Refusal> {
    let (account, id) = (call.param("account_id"), call.param("queue_id"));
    let mut all = call.world.stored::<Queue>();
    let found = all.find(|queue| queue.account_id == account && queue.id == id);
    found.map(|queue| Queue::clone(queue)).ok_or_else(|| {
        let text = format!("Queue '{id}' not found. Please verify it exists and try again.");
        Refusal::new(404, 11_000, text)
    })
}

fn name(body: &Map<String, Value>) -> Result<String, Refusal> {
    let name = body.get("queue_name").and_then(Value::as_str).unwrap_or_default();
    if is_name(name) {
        return Ok(name.to_owned());
    }
    let text = format!(
        "Queue name '{name}' is invalid: invalid queue name: {name}. Must match ^[a-z0-9]([a-z0-9-]{{0,61}}[a-z0-9])?$."
    );
    Err(Refusal::new(400, 11_003, text))
}

fn is_name(name: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (1..=63).contains(&name.len())
        && name.starts_with(is_alphanumeric)
        && name.ends_with(is_alphanumeric)
        && name.chars().all(|c| is_alphanumeric(c) || c == '-')
}

fn name_is_free(world: &World, queue: &Queue) -> Result<(), Refusal> {
    let other = world.queue(&queue.account_id, &queue.name);
    if other.is_none_or(|other| other.id == queue.id) {
        return Ok(());
    }
    let text = format!(
        "Queue name '{}' is already taken. Please use a different name and try again.",
        queue.name
    );
    Err(Refusal::new(409, 11_009, text))
}

/// Seconds that a new queue delays and keeps messages.
const DELAY: u64 = 0;
const RETENTION: u64 = 86_400;

/// The settings of a body.
struct Settings {
    delivery_delay: u64,
    message_retention_period: u64,
    delivery_paused: Option<bool>,
}

impl Settings {
    fn apply(self, queue: &mut Queue) {
        queue.delivery_delay = self.delivery_delay;
        queue.message_retention_period = self.message_retention_period;
        queue.delivery_paused = self.delivery_paused;
    }
}

/// What the settings are after this body.
fn settings(body: &Map<String, Value>, queue: &Queue, world: &World) -> Result<Settings, Refusal> {
    let mut settings = Settings {
        delivery_delay: queue.delivery_delay,
        message_retention_period: queue.message_retention_period,
        delivery_paused: queue.delivery_paused,
    };
    let Some(sent) = body.get("settings") else {
        return Ok(settings);
    };
    let sent = sent.as_object().ok_or_else(|| not_valid("settings"))?;
    // The longer time is for the paid Workers plan (Cloudflare documents).
    let account = world.held().accounts.get(&queue.account_id);
    let longest = match account.map(|account| account.kind) {
        Some(AccountType::Enterprise) => 1_209_600,
        _ => RETENTION,
    };
    for (field, value) in sent {
        let seconds = |least: u64, most: u64| {
            let seconds = value.as_u64().filter(|seconds| (least..=most).contains(seconds));
            seconds.ok_or_else(|| not_valid(field))
        };
        match field.as_str() {
            "delivery_delay" => settings.delivery_delay = seconds(0, 86_400)?,
            "message_retention_period" => settings.message_retention_period = seconds(60, longest)?,
            "delivery_paused" => {
                settings.delivery_paused = Some(value.as_bool().ok_or_else(|| not_valid(field))?);
            }
            _ => return Err(not_valid(field)),
        }
    }
    Ok(settings)
}

/// The code is that of Cloudflare's own client for settings out of range; status, text, and the code for others are unproven.
fn not_valid(field: &str) -> Refusal {
    Refusal::new(400, 100_128, format!("Queue settings are invalid: {field}."))
}

/// The queue as the API shows it.
pub(crate) fn render(queue: &Queue, shape: Shape, world: &World) -> Value {
    let mut shown = json!({
        "queue_id": queue.id,
        "queue_name": queue.name,
        "created_on": micros(queue.created_on),
        "modified_on": micros(queue.modified_on),
    });
    // Whether a queue without it says null is unproven.
    if let Some(jurisdiction) = &queue.jurisdiction {
        shown["jurisdiction"] = json!(jurisdiction);
    }
    if shape != Shape::Listed {
        shown["settings"] = json!({
            "delivery_delay": queue.delivery_delay,
            "message_retention_period": queue.message_retention_period,
        });
        // A new queue does not say it. That it is said after it was set is what Cloudflare's description has.
        if let Some(paused) = queue.delivery_paused {
            shown["settings"]["delivery_paused"] = json!(paused);
        }
    }
    if shape != Shape::Written {
        let senders = senders(world, &queue.account_id, &queue.name);
        shown["producers_total_count"] = json!(senders.len());
        shown["producers"] = senders
            .iter()
            .map(|script| json!({ "type": "worker", "script": script }))
            .collect();
        shown["consumers_total_count"] = json!(0);
        shown["consumers"] = json!([]);
    }
    shown
}
