//! Pages of lists and the query string.

use serde_json::{Map, Value, json};

use crate::envelope::Refusal;

/// A parsed query string: decoded pairs in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        Self(
            form_urlencoded::parse(query.unwrap_or_default().as_bytes())
                .into_owned()
                .collect(),
        )
    }

    /// The last value of `key`; empty values count as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .rev()
            .find(|(name, value)| name == key && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    /// Whether `key` is there at all, with or without a value.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// Every value of `key`, split at commas.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(name, _)| name == key)
            .flat_map(|(_, value)| value.split(','))
            .map(str::trim)
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Refusal> {
        self.get(key)
            .map(|text| {
                text.parse()
                    .map_err(|_| Refusal::new(400, 6003, format!("Invalid query parameter: {key} must be a number")))
            })
            .transpose()
    }
}

/// The sizes of pages a list offers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageSizes {
    pub(crate) default: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// The page that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) number: u64,
    pub(crate) size: u64,
}

impl Page {
    /// `page` and `per_page` of the query. Sizes out of range are clamped: what Cloudflare does with them is not known.
    pub(crate) fn from_query(query: &Query, sizes: PageSizes) -> Result<Self, Refusal> {
        let number = query.number("page")?.unwrap_or(1).max(1);
        let size = query
            .number("per_page")?
            .unwrap_or(sizes.default)
            .clamp(sizes.min, sizes.max);
        Ok(Self { number, size })
    }

    /// The part of `all` that is on this page.
    pub(crate) fn cut<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        let start = usize::try_from((self.number - 1).saturating_mul(self.size))
            .unwrap_or(usize::MAX)
            .min(all.len());
        let end = start
            .saturating_add(usize::try_from(self.size).unwrap_or(usize::MAX))
            .min(all.len());
        &all[start..end]
    }

    /// `result_info`. `total_pages` of an empty list is 0 (seen live).
    pub(crate) fn info(&self, count: usize, all: usize) -> Map<String, Value> {
        let pages = (all as u64).div_ceil(self.size);
        let info = json!({
            "page": self.number,
            "per_page": self.size,
            "count": count,
            "total_count": all,
            "total_pages": pages,
        });
        match info {
            Value::Object(info) => info,
            _ => Map::new(),
        }
    }
}
