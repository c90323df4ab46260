//! DNS records.

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Client, Error, Paging, Request};

/// A DNS record, as Cloudflare sends it: names are absolute, in punycode and lower case, without a trailing dot.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Record {
    /// The id: 32 hexadecimal digits.
    pub id: String,
    /// The absolute name. Empty only in replies that carry nothing but the id.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub name: String,
    /// The type (`A`, `MX` ...). Empty only in replies that carry nothing but the id.
    #[serde(rename = "type", default, deserialize_with = "super::null_as_default")]
    pub kind: String,
    /// The content; for types with `data`, Cloudflare's rendering of it.
    #[serde(default)]
    pub content: Option<String>,
    /// Time to live in seconds; 1 means automatic, and is what no value means.
    #[serde(default = "automatic", deserialize_with = "time_to_live")]
    pub ttl: u32,
    /// Whether traffic goes through Cloudflare.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub proxied: bool,
    /// Whether it could.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub proxiable: bool,
    /// The priority of an MX or URI record; other types have theirs in `data`.
    #[serde(default)]
    pub priority: Option<u32>,
    /// The comment. Cloudflare sends null, nothing or an empty text for none.
    #[serde(default)]
    pub comment: Option<String>,
    /// The tags, as `name:value`.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub tags: Vec<String>,
    /// The parts of the content, for types that have them; else null.
    #[serde(default)]
    pub data: Value,
    /// Settings such as `flatten_cname`; null when Cloudflare leaves them out, which means all are off.
    #[serde(default)]
    pub settings: Value,
    /// What Cloudflare says about the record, such as `read_only` or who manages it.
    #[serde(default)]
    pub meta: Value,
    /// When it was made.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub created_on: Option<Timestamp>,
    /// When it was last really changed.
    #[serde(default, deserialize_with = "super::lenient_time")]
    pub modified_on: Option<Timestamp>,
}

/// Changes of one zone that are made together or not at all. Cloudflare works on deletes, patches, puts and posts in
/// this order, in one transaction; it takes 200 changes in a call on the Free plan and 3,500 on paid ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Batch {
    /// Records to delete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deletes: Vec<RecordId>,
    /// Objects with `id` and the fields to change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Value>,
    /// Whole records with `id`; what is left out goes back to its default.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub puts: Vec<Value>,
    /// New records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub posts: Vec<Value>,
}

/// Names a record in a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordId {
    /// The id.
    pub id: String,
}

impl Batch {
    /// How many changes it holds.
    pub fn len(&self) -> usize {
        self.deletes.len() + self.patches.len() + self.puts.len() + self.posts.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The records after a batch, each list in the order of the list that was sent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct BatchReply {
    /// The records that were deleted.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub deletes: Vec<Record>,
    /// The records that were patched.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub patches: Vec<Record>,
    /// The records that were put.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub puts: Vec<Record>,
    /// The records that were made.
    #[serde(default, deserialize_with = "super::null_as_default")]
    pub posts: Vec<Record>,
}

const RECORDS: &str = "/zones/{zone_id}/dns_records";
const RECORD: &str = "/zones/{zone_id}/dns_records/{record_id}";

/// Rows of a page of records. Cloudflare documents up to 5,000,000; this keeps a page near 3 MB.
const PER_PAGE: u32 = 5_000;

/// Every record of a zone.
pub async fn list(client: &Client, zone_id: &str) -> Result<Vec<Record>, Error> {
    list_into(client, zone_id, |record| record).await
}

/// Every record of a zone, each turned into what is wanted of it. See [`Client::list_pages_into`].
pub async fn list_into<T>(
    client: &Client,
    zone_id: &str,
    into: impl FnMut(Record) -> T + Send,
) -> Result<Vec<T>, Error> {
    let request = Request::get(RECORDS, &[zone_id]);
    client
        .list_pages_into(request, Paging::Page { per_page: PER_PAGE }, into)
        .await
}

/// The records with this absolute name, of all types. Case does not matter.
pub async fn find_by_name(client: &Client, zone_id: &str, name: &str) -> Result<Vec<Record>, Error> {
    let request = Request::get(RECORDS, &[zone_id]).query("name", name);
    let mut records: Vec<Record> = client.list_pages(request, Paging::Page { per_page: PER_PAGE }).await?;
    records.retain(|record| record.name.eq_ignore_ascii_case(name));
    Ok(records)
}

/// One record. A missing one is 404 with code 81044.
pub async fn get(client: &Client, zone_id: &str, record_id: &str) -> Result<Record, Error> {
    client.call(Request::get(RECORD, &[zone_id, record_id])).await
}

/// Makes a record.
pub async fn create(client: &Client, zone_id: &str, body: &Value) -> Result<Record, Error> {
    client.call(Request::post(RECORDS, &[zone_id]).json(body)).await
}

/// Changes the given fields of a record; `data` is replaced as a whole.
pub async fn patch(client: &Client, zone_id: &str, record_id: &str, body: &Value) -> Result<Record, Error> {
    client
        .call(Request::patch(RECORD, &[zone_id, record_id]).json(body))
        .await
}

/// Deletes a record.
pub async fn delete(client: &Client, zone_id: &str, record_id: &str) -> Result<(), Error> {
    client
        .call::<IgnoredAny>(Request::delete(RECORD, &[zone_id, record_id]))
        .await
        .map(drop)
}

/// Makes several changes in one call. The first one that fails undoes all and is what the error is about.
pub async fn batch(client: &Client, zone_id: &str, batch: &Batch) -> Result<BatchReply, Error> {
    let request = Request::post("/zones/{zone_id}/dns_records/batch", &[zone_id]).json(batch);
    Ok(client.call::<Option<BatchReply>>(request).await?.unwrap_or_default())
}

fn automatic() -> u32 {
    1
}

fn time_to_live<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(automatic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reads_a_record_with_nulls_and_one_with_nothing() {
        let record: Record = serde_json::from_value(json!({
            "id": "r1", "name": "_sip.example.com", "type": "SRV", "content": "0 5222 talk.example.com", "ttl": 300,
            "proxied": false, "proxiable": false, "priority": 5, "comment": null, "tags": null,
            "data": {"priority": 5, "weight": 0, "port": 5222, "target": "talk.example.com"},
            "meta": {"auto_added": false}, "modified_on": "2026-09-29T10:00:00Z", "zone_id": "z1"
        }))
        .unwrap();
        assert_eq!((record.ttl, record.priority, record.tags.len()), (300, Some(5), 0));
        assert_eq!(record.data["port"], 5222);
        assert_eq!(record.settings, Value::Null);

        let bare: Record = serde_json::from_value(json!({"id": "r1", "ttl": null})).unwrap();
        assert_eq!(
            (bare.kind.as_str(), bare.proxied, bare.content, bare.ttl),
            ("", false, None, 1)
        );
        let bare: Record = serde_json::from_value(json!({"id": "r1"})).unwrap();
        assert_eq!(bare.ttl, 1);
    }

    #[test]
    fn a_batch_sends_only_what_it_holds() {
        let batch = Batch {
            deletes: vec![RecordId { id: "r1".to_owned() }],
            posts: vec![json!({"name": "a.example.com"})],
            ..Batch::default()
        };
        assert_eq!(batch.len(), 2);
        assert_eq!(
            serde_json::to_value(&batch).unwrap(),
            json!({"deletes": [{"id": "r1"}], "posts": [{"name": "a.example.com"}]})
        );
        let reply: BatchReply =
            serde_json::from_value(json!({"deletes": [{"id": "r1"}], "patches": null, "posts": []})).unwrap();
        assert_eq!((reply.deletes.len(), reply.patches.len()), (1, 0));
    }
}
