//! `GET .../dns_records`: filters, order and pages.

use std::cmp::Ordering;
use std::sync::Arc;

use super::record::Record;
use crate::config::Quirks;
use crate::envelope::{Refusal, Reply};
use crate::paging::{Page, PageSizes, Query};
use crate::route::Call;

const SIZES: PageSizes = PageSizes {
    default: 100,
    min: 1,
    max: 5_000_000,
};

pub(super) fn list(call: &mut Call<'_>) -> Result<Reply, Refusal> {
    let page = Page::from_query(call.query, SIZES)?;
    let zone = call.param("zone_id");
    let mut records = match call.view {
        None => call.world.records(zone),
        Some(point) => call.world.records_at(zone, point),
    };
    let filters = Filters::from_query(call.query);
    records.retain(|record| filters.keep(record, call.quirks));
    sort(&mut records, call.query, call.quirks);
    let items = page
        .cut(&records)
        .iter()
        .map(|record| record.render(call.quirks))
        .collect();
    Ok(Reply::page(&page, records.len(), items))
}

/// By type unless asked otherwise; ties by name, then id.
fn sort(records: &mut [Arc<Record>], query: &Query, quirks: Quirks) {
    let tie = |a: &Record, b: &Record| {
        (a.fields.kind.name(), &a.fields.name, &a.id).cmp(&(b.fields.kind.name(), &b.fields.name, &b.id))
    };
    let by: fn(&Record, &Record, Quirks) -> Ordering = match query.get("order") {
        Some("name") => |a, b, _| a.fields.name.cmp(&b.fields.name),
        Some("content") => |a, b, quirks| a.fields.content(quirks).cmp(&b.fields.content(quirks)),
        Some("ttl") => |a, b, _| a.fields.ttl.cmp(&b.fields.ttl),
        Some("proxied") => |a, b, _| a.fields.proxied.cmp(&b.fields.proxied),
        _ => |_, _, _| Ordering::Equal,
    };
    records.sort_by(|a, b| by(a, b, quirks).then_with(|| tie(a, b)));
    if query.get("direction") == Some("desc") {
        records.reverse();
    }
}

/// Several filters hold together or one by one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    All,
    Any,
}

impl Match {
    fn from_query(query: &Query, key: &str) -> Self {
        if query.get(key) == Some("any") {
            Self::Any
        } else {
            Self::All
        }
    }

    fn holds(self, results: &[bool]) -> bool {
        match self {
            _ if results.is_empty() => true,
            Self::All => results.iter().all(|result| *result),
            Self::Any => results.iter().any(|result| *result),
        }
    }
}

struct Filters {
    kind: Option<String>,
    proxied: Option<bool>,
    search: Option<String>,
    name: Vec<TextFilter>,
    content: Vec<TextFilter>,
    comment: Vec<TextFilter>,
    tag: Vec<TextFilter>,
    matching: Match,
    tag_matching: Match,
}

impl Filters {
    fn from_query(query: &Query) -> Self {
        Self {
            kind: query.get("type").map(str::to_ascii_uppercase),
            proxied: query.get("proxied").map(|text| text == "true"),
            search: query.get("search").map(str::to_lowercase),
            name: TextFilter::of(query, "name"),
            content: TextFilter::of(query, "content"),
            comment: TextFilter::of(query, "comment"),
            tag: TextFilter::of(query, "tag"),
            matching: Match::from_query(query, "match"),
            tag_matching: Match::from_query(query, "tag_match"),
        }
    }

    fn keep(&self, record: &Record, quirks: Quirks) -> bool {
        let fields = &record.fields;
        let mut results = Vec::new();
        results.extend(self.kind.as_ref().map(|kind| fields.kind.name() == kind));
        results.extend(self.proxied.map(|proxied| fields.proxied == proxied));
        results.extend(self.name.iter().map(|filter| filter.fits(&fields.name)));
        if !self.content.is_empty() || self.search.is_some() {
            let content = fields.content(quirks);
            results.extend(self.content.iter().map(|filter| filter.fits(&content)));
            results.extend(self.search.as_ref().map(|text| {
                let everything = [fields.name.as_str(), content.as_str(), fields.comment.as_str()];
                everything
                    .iter()
                    .any(|part| part.to_lowercase().contains(text.as_str()))
            }));
        }
        results.extend(self.comment.iter().map(|filter| filter.fits(&fields.comment)));
        if !self.tag.is_empty() {
            let tags: Vec<bool> = self.tag.iter().map(|filter| filter.fits_tags(&fields.tags)).collect();
            results.push(self.tag_matching.holds(&tags));
        }
        self.matching.holds(&results)
    }
}

/// A test of a text, case-insensitive as Cloudflare documents.
struct TextFilter {
    operator: Operator,
    text: String,
}

#[derive(Clone, Copy)]
enum Operator {
    Exact,
    Contains,
    StartsWith,
    EndsWith,
    Present,
    Absent,
}

impl TextFilter {
    fn of(query: &Query, field: &str) -> Vec<Self> {
        const OPERATORS: [(&str, Operator); 7] = [
            ("", Operator::Exact),
            (".exact", Operator::Exact),
            (".contains", Operator::Contains),
            (".startswith", Operator::StartsWith),
            (".endswith", Operator::EndsWith),
            (".present", Operator::Present),
            (".absent", Operator::Absent),
        ];
        let mut filters = Vec::new();
        for (suffix, operator) in OPERATORS {
            let key = format!("{field}{suffix}");
            let text = match operator {
                // Of comments these take no value, of tags the tag's name.
                Operator::Present | Operator::Absent if query.has(&key) => query.get(&key).unwrap_or_default(),
                _ => match query.get(&key) {
                    Some(text) => text,
                    None => continue,
                },
            };
            filters.push(Self {
                operator,
                text: text.to_lowercase(),
            });
        }
        filters
    }

    fn fits(&self, value: &str) -> bool {
        let value = value.to_lowercase();
        match self.operator {
            Operator::Exact => value == self.text,
            Operator::Contains => value.contains(&self.text),
            Operator::StartsWith => value.starts_with(&self.text),
            Operator::EndsWith => value.ends_with(&self.text),
            Operator::Present => !value.is_empty(),
            Operator::Absent => value.is_empty(),
        }
    }

    /// Tags are `name:value`: present and absent ask for the name, the others for `name:value` with a test of the value.
    fn fits_tags(&self, tags: &[String]) -> bool {
        let has = |test: &dyn Fn(&str, &str) -> bool| {
            tags.iter().any(|tag| {
                let tag = tag.to_lowercase();
                let (name, value) = tag.split_once(':').unwrap_or((&tag, ""));
                test(name, value)
            })
        };
        let (wanted, text) = self.text.split_once(':').unwrap_or((&self.text, ""));
        match self.operator {
            Operator::Exact => has(&|name, value| name == wanted && value == text),
            Operator::Contains => has(&|name, value| name == wanted && value.contains(text)),
            Operator::StartsWith => has(&|name, value| name == wanted && value.starts_with(text)),
            Operator::EndsWith => has(&|name, value| name == wanted && value.ends_with(text)),
            Operator::Present => has(&|name, _| name == self.text),
            Operator::Absent => !has(&|name, _| name == self.text),
        }
    }
}
