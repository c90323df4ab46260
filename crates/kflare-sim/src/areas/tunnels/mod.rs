//! `/accounts/{account_id}/cfd_tunnel`: tunnels, their tokens, configurations and connections.

mod configurations;
mod connections;
mod foreign;
mod seed;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::auth::Access;
use crate::budget::Policy;
use crate::envelope::{Refusal, Reply, ReplyBody};
use crate::paging::{Page, PageSizes, Query};
use crate::route::{Answers, Call, Handler, Route};
use crate::state::{Area, ConfigSource, Permission, Tunnel, TunnelConfigurationDocument, World};

pub(crate) use foreign::control;
pub use seed::TunnelSeed;

const READ: Access = Access::Account(Permission::read(Area::Tunnel));
const WRITE: Access = Access::Account(Permission::write(Area::Tunnel));

const TUNNELS: &str = "/accounts/{account_id}/cfd_tunnel";
const TUNNEL: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}";
const TOKEN: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/token";
const CONFIGURATIONS: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/configurations";
const CONNECTIONS: &str = "/accounts/{account_id}/cfd_tunnel/{tunnel_id}/connections";

pub(crate) static ROUTES: [Route; 10] = [
    Route {
        method: "GET",
        template: TUNNELS,
        access: READ,
        answers: Answers::List,
        policy: Policy::DEFAULT,
        handler: list,
    },
    route("POST", TUNNELS, WRITE, create),
    route("GET", TUNNEL, READ, get),
    route("PATCH", TUNNEL, WRITE, patch),
    route("DELETE", TUNNEL, WRITE, delete),
    // Whoever has the token can run the tunnel: reading it takes the right to change it (Cloudflare documents).
    route("GET", TOKEN, WRITE, token),
    route("GET", CONFIGURATIONS, READ, configurations::get),
    route("PUT", CONFIGURATIONS, WRITE, configurations::put),
    route("GET", CONNECTIONS, READ, connections::list),
    route("DELETE", CONNECTIONS, WRITE, connections::clean_up),
];

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

const SIZES: PageSizes = PageSizes {
    default: 1000,
    min: 1,
    max: 1000,
};

/// The fewest bytes of a tunnel secret (Cloudflare documents).
const SECRET_BYTES: usize = 32;

/// The tunnel in the path, deleted or not.
fn found(call: &Call<'_>) -> Result<Arc<Tunnel>, Refusal> {
    let tunnel = call.world.held().tunnels.get(call.param("tunnel_id"));
    let tunnel = tunnel.filter(|tunnel| tunnel.account_id == call.param("account_id"));
    tunnel.cloned().ok_or_else(not_found)
}

/// The tunnel in the path, to be changed. What Cloudflare says to changes of a deleted one is unproven.
fn live(call: &Call<'_>) -> Result<Tunnel, Refusal> {
    let tunnel = found(call)?;
    if tunnel.is_live() {
        Ok(Tunnel::clone(&tunnel))
    } else {
        Err(not_found())
    }
}

fn not_found() -> Refusal {
    Refusal::new(404, 1002, "Tunnel not found")
}

/// The simulator's own answer, never Cloudflare's.
fn not_modelled(what: &str) -> Refusal {
    Refusal::new(501, 10_501, format!("kflare-sim does not model {what}"))
}

fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    for filter in ["existed_at", "was_active_at", "was_inactive_at"] {
        if call.query.has(filter) {
            return Err(not_modelled(&format!("the filter {filter} of tunnels")));
        }
    }
    let page = Page::from_query(call.query, SIZES)?;
    let account = call.param("account_id");
    let mut tunnels = call.world.tunnels(call.view);
    tunnels.retain(|tunnel| tunnel.account_id == account && fits(tunnel, call.query, call.now));
    tunnels.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    let items = page.cut(&tunnels).iter();
    let items = items.map(|tunnel| Value::Object(tunnel.render(call.now))).collect();
    let mut reply = Reply::page(&page, tunnels.len(), items);
    // Lists of tunnels do not say how many pages there are (seen live).
    if let ReplyBody::Result { info: Some(info), .. } = &mut reply.body {
        info.remove("total_pages");
    }
    Ok(reply)
}

/// Deleted tunnels are there unless the query says otherwise (seen live).
fn fits(tunnel: &Tunnel, query: &Query, now: jiff::Timestamp) -> bool {
    let is = |key: &str, value: &str| query.get(key).is_none_or(|wanted| wanted == value);
    let deleted = if tunnel.is_live() { "false" } else { "true" };
    is("name", &tunnel.name)
        && is("uuid", &tunnel.id)
        && is("status", tunnel.status(now))
        && is("is_deleted", deleted)
        && query
            .get("include_prefix")
            .is_none_or(|prefix| tunnel.name.starts_with(prefix))
        && query
            .get("exclude_prefix")
            .is_none_or(|prefix| !tunnel.name.starts_with(prefix))
}

fn name_of(value: Option<&Value>) -> Result<String, Refusal> {
    let name = value.and_then(Value::as_str).filter(|name| !name.is_empty());
    // The code is unproven.
    let name = name.ok_or_else(|| Refusal::new(400, 1001, "Tunnel name is missing or not a text"))?;
    Ok(name.to_owned())
}

fn secret_of(value: &Value) -> Result<String, Refusal> {
    let text = value.as_str().unwrap_or_default();
    let is_long_enough = STANDARD.decode(text).is_ok_and(|bytes| bytes.len() >= SECRET_BYTES);
    // The code is unproven.
    is_long_enough
        .then(|| text.to_owned())
        .ok_or_else(|| Refusal::new(400, 1001, "tunnel_secret must be at least 32 bytes in base64"))
}

/// Names are taken by tunnels that live only.
fn free_name(world: &World, account: &str, name: &str, own: Option<&str>) -> Result<(), Refusal> {
    let taken = world.held().tunnels.values().any(|other| {
        other.account_id == account && other.is_live() && other.name == name && Some(other.id.as_str()) != own
    });
    if taken {
        let text = "You already have a tunnel with this name. Please choose a different name.";
        return Err(Refusal::new(409, 1013, text));
    }
    Ok(())
}

fn create(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let name = name_of(body.get("name"))?;
    let config_src = match body.get("config_src").and_then(Value::as_str) {
        None | Some("local") => ConfigSource::Local,
        Some("cloudflare") => ConfigSource::Cloudflare,
        // The code is unproven.
        Some(_) => return Err(Refusal::new(400, 1001, "config_src must be local or cloudflare")),
    };
    let secret = body.get("tunnel_secret").map(secret_of).transpose()?;
    let account = call.param("account_id").to_owned();
    free_name(call.world, &account, &name, None)?;
    let id = call.world.new_uuid();
    let tunnel = new(call.world, id, account, name, config_src, secret, call.now);
    let mut shown = tunnel.render_with_connections(call.now);
    shown.extend(tunnel.render_secrets());
    call.world.put_tunnel(tunnel, call.now);
    Ok(Reply::object(Value::Object(shown)))
}

fn new(
    world: &mut World,
    id: String,
    account_id: String,
    name: String,
    config_src: ConfigSource,
    secret: Option<String>,
    now: jiff::Timestamp,
) -> Tunnel {
    Tunnel {
        id,
        account_id,
        name,
        secret: secret.unwrap_or_else(|| drawn_secret(world)),
        config_src,
        created_at: now,
        deleted_at: None,
        configuration: TunnelConfigurationDocument {
            version: 0,
            config: None,
            created_at: now,
        },
        connectors: Vec::new(),
        active_at: None,
        lost_at: None,
    }
}

fn drawn_secret(world: &mut World) -> String {
    STANDARD.encode(crate::ids::stable(&world.new_id()))
}

fn get(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let tunnel = found(call)?;
    Ok(Reply::object(Value::Object(tunnel.render(call.now))))
}

fn patch(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let body = call.json()?;
    let mut tunnel = live(call)?;
    if let Some(name) = body.get("name") {
        tunnel.name = name_of(Some(name))?;
        free_name(call.world, &tunnel.account_id, &tunnel.name, Some(&tunnel.id))?;
    }
    if let Some(secret) = body.get("tunnel_secret") {
        tunnel.secret = secret_of(secret)?;
    }
    let shown = tunnel.render_with_connections(call.now);
    call.world.put_tunnel(tunnel, call.now);
    Ok(Reply::object(Value::Object(shown)))
}

/// Soft: the tunnel stays readable (seen live).
fn delete(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let mut tunnel = live(call)?;
    tunnel.settle(call.now);
    if !tunnel.connectors.is_empty() {
        let text = "This tunnel has active connections. Please stop all cloudflared replicas, or wait a few minutes for \
                    connections to close, then try again.";
        return Err(Refusal::new(400, 1022, text));
    }
    tunnel.deleted_at = Some(call.now);
    let shown = tunnel.render_with_connections(call.now);
    call.world.put_tunnel(tunnel, call.now);
    Ok(Reply::object(Value::Object(shown)))
}

/// Readable at any time, as long as the tunnel lives (seen live).
fn token(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let tunnel = found(call).ok().filter(|tunnel| tunnel.is_live());
    let tunnel = tunnel.ok_or_else(|| Refusal::new(404, 1054, "Tunnel token not found"))?;
    Ok(Reply::object(Value::String(tunnel.token())))
}
