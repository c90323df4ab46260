//! `GET .../export`: the zone as a BIND file.

use std::fmt::Write;

use super::kind::RecordType;
use crate::config::{Quirks, TxtForm};
use crate::envelope::{Refusal, Reply};
use crate::route::Call;
use crate::time::seconds;

/// Records in BIND's form. The layout of Cloudflare's own file is not reproduced to the letter.
pub(super) fn export(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let zone = call.zone()?;
    let mut records = call.world.records(&zone.id);
    records.sort_by(|a, b| (a.fields.kind, &a.fields.name, &a.id).cmp(&(b.fields.kind, &b.fields.name, &b.id)));
    let quirks = Quirks {
        txt: TxtForm::Quoted,
        ..call.quirks
    };
    let mut file = format!(";; Domain:     {}.\n;; Exported:   {}\n", zone.name, seconds(call.now));
    for record in records {
        let fields = &record.fields;
        let mut value = match (fields.kind, &fields.value) {
            // Here the priority belongs to the value.
            (RecordType::Srv, super::record::RecordValue::Data(data)) => {
                format!("{} {}", data["priority"], fields.content(quirks))
            }
            _ => fields.content(quirks),
        };
        if let Some(priority) = fields.priority {
            value = format!("{priority} {value}");
        }
        let names_a_host = matches!(
            fields.kind,
            RecordType::Cname | RecordType::Mx | RecordType::Ns | RecordType::Ptr | RecordType::Srv
        );
        if names_a_host && !value.ends_with('.') {
            value.push('.');
        }
        // Writing to a String cannot fail.
        let _ = writeln!(file, "{}.\t{}\tIN\t{}\t{value}", fields.name, fields.ttl, fields.kind);
    }
    Ok(Reply::text("text/plain; charset=utf-8", file))
}
