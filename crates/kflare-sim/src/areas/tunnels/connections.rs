//! `.../connections`: the connectors that run a tunnel.

use serde_json::{Value, json};

use super::{found, live, not_modelled};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::state::{CONNECTOR_VERSION, Connector, connection};
use crate::time::micros;

/// No `result_info`; a deleted tunnel has none (seen live).
pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let tunnel = found(call)?;
    let connectors: Vec<Value> = tunnel.connected(call.now).map(render).collect();
    Ok(Reply::object(Value::Array(connectors)))
}

fn render(connector: &Connector) -> Value {
    let connections: Vec<Value> = connector
        .connections
        .iter()
        .map(|id| connection(connector, id))
        .collect();
    json!({
        "id": connector.id,
        "features": ["allow_remote_config", "serialized_headers", "support_datagram_v2"],
        "version": CONNECTOR_VERSION,
        "arch": "linux_amd64",
        "conns": connections,
        "run_at": micros(connector.run_at),
        "ha_status": null,
    })
}

pub(super) fn clean_up(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    if call.query.has("client_id") {
        return Err(not_modelled("cleaning up the connections of a single connector"));
    }
    let mut tunnel = live(call)?;
    tunnel.clean_up(call.now);
    call.world.put_tunnel(tunnel, call.now);
    Ok(Reply::object(json!({})))
}
