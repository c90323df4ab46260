//! Lists that come in pages.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::answer::{Answer, decode_error};
use crate::client::{Client, asked};
use crate::error::{DecodeError, Error, Incompleteness};
use crate::request::Request;

/// How a list is cut into pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paging {
    /// `page` (from 1) and `per_page`; `result_info` may have `total_count` and `total_pages`. Zones, DNS records, KV
    /// namespaces, tunnels ...
    Page {
        /// Rows asked for; Cloudflare may give fewer a page and says so.
        per_page: u32,
    },
    /// `cursor` and `per_page`; the next cursor is `result_info.cursors.after`. Rulesets, items of a list.
    Cursor {
        /// Rows asked for.
        per_page: u32,
    },
    /// `cursor` and a size; the next cursor is `result_info.cursor`. R2 buckets, KV keys.
    CursorFlat {
        /// The name of the size parameter: `per_page`, or `limit` for KV keys.
        size: &'static str,
        /// Rows asked for.
        rows: u32,
        /// The member of the result that holds the rows (`buckets`), if the result is not itself the list.
        field: Option<&'static str>,
    },
    /// Everything at once, whatever is asked. Worker scripts, routes, rules lists, VPC services ...
    Single,
    /// As [`Paging::Page`], with the rows in a member of the result. Worker versions (`items`), deployments.
    PageInObject {
        /// The member of the result that holds the rows.
        field: &'static str,
        /// Rows asked for.
        per_page: u32,
    },
}

/// The most pages that are followed: ten times what the largest zone needs.
const MAX_PAGES: u32 = 10_000;

impl Client {
    /// Lists a whole collection: all of it, or an error.
    ///
    /// Stops at the last page by `total_pages`, `total_count` or a short page, without asking for an empty one more.
    /// The number of rows must be the `total_count` where there is one, which must not change from page to page, and no
    /// row may come on two pages. If a list is not whole in this sense because others write meanwhile, it is read once
    /// more from the start; if it is not whole then either, that is [`Error::Incomplete`].
    ///
    /// ```
    /// # use kflare_cloudflare::{Client, Error, Paging, Request};
    /// # async fn f(client: &Client) -> Result<(), Error> {
    /// let request = Request::get("/accounts/{account_id}/r2/buckets", &["a1"]);
    /// let paging = Paging::CursorFlat { size: "per_page", rows: 1_000, field: Some("buckets") };
    /// let buckets: Vec<serde_json::Value> = client.list_pages(request, paging).await?;
    /// # Ok(()) }
    /// ```
    pub async fn list_pages<T: DeserializeOwned>(&self, request: Request, style: Paging) -> Result<Vec<T>, Error> {
        self.list_pages_into(request, style, |row| row).await
    }

    /// As [`Self::list_pages`], for large collections: each row is turned into what is wanted of it as soon as it is read, so
    /// that the rows are never in memory all together.
    pub async fn list_pages_into<T: DeserializeOwned, U>(
        &self,
        request: Request,
        style: Paging,
        mut into: impl FnMut(T) -> U + Send,
    ) -> Result<Vec<U>, Error> {
        let asked = asked(&request);
        let rows = match self.walk(&request, style).await {
            Err(Error::Incomplete { .. }) => self.walk(&request, style).await?,
            other => other?,
        };
        rows.into_iter()
            .map(|row| {
                serde_json::from_str(row.get())
                    .map(&mut into)
                    .map_err(|error| decode_error(asked, http::StatusCode::OK, DecodeError::from_json(&error)))
            })
            .collect()
    }

    async fn walk(&self, request: &Request, style: Paging) -> Result<Vec<Box<RawValue>>, Error> {
        let incomplete = |reason| Error::Incomplete {
            route: request.route(),
            reason,
        };
        let mut listing = Listing::default();
        let mut next = Some(Position::first(style));
        while let Some(position) = next {
            if listing.pages >= MAX_PAGES {
                return Err(incomplete(Incompleteness::TooLong));
            }
            let answer = self.send(&position.apply(request.clone(), style)).await?;
            let rows = answer.rows(asked(request), style.field())?;
            let page = PageInfo::read(&answer, rows.len());
            listing.add(rows, &page).map_err(incomplete)?;
            next = position.next(style, &page, &listing).map_err(incomplete)?;
        }
        listing.finish().map_err(incomplete)
    }
}

impl Paging {
    fn field(self) -> Option<&'static str> {
        match self {
            Self::CursorFlat { field, .. } => field,
            Self::PageInObject { field, .. } => Some(field),
            Self::Page { .. } | Self::Cursor { .. } | Self::Single => None,
        }
    }
}

/// Where in the list the next call reads.
enum Position {
    Page(u32),
    Cursor(Option<String>),
}

impl Position {
    fn first(style: Paging) -> Self {
        match style {
            Paging::Page { .. } | Paging::PageInObject { .. } => Self::Page(1),
            Paging::Cursor { .. } | Paging::CursorFlat { .. } | Paging::Single => Self::Cursor(None),
        }
    }

    fn apply(&self, request: Request, style: Paging) -> Request {
        let request = match style {
            Paging::Page { per_page } | Paging::PageInObject { per_page, .. } | Paging::Cursor { per_page } => {
                request.query("per_page", per_page)
            }
            Paging::CursorFlat { size, rows, .. } => request.query(size, rows),
            Paging::Single => request,
        };
        match self {
            Self::Page(page) => request.query("page", page),
            Self::Cursor(Some(cursor)) => request.query("cursor", cursor),
            Self::Cursor(None) => request,
        }
    }

    /// Where to go on after `page`, or `None` at the end.
    fn next(self, style: Paging, page: &PageInfo, listing: &Listing) -> Result<Option<Self>, Incompleteness> {
        match (self, style) {
            (Self::Page(number), Paging::Page { per_page } | Paging::PageInObject { per_page, .. }) => {
                if number > 1 && page.number.is_some_and(|shown| shown != u64::from(number)) {
                    return Err(Incompleteness::PageRepeated);
                }
                let last = match (page.total_pages, page.total_count) {
                    (Some(pages), _) => u64::from(number) >= pages,
                    (None, Some(total)) => listing.rows.len() as u64 >= total || page.rows == 0,
                    // Without any information a page of another size than asked for is all there is.
                    (None, None) => page.rows as u64 != page.per_page.unwrap_or(u64::from(per_page)),
                };
                Ok((!last).then_some(Self::Page(number + 1)))
            }
            (Self::Cursor(before), Paging::Cursor { .. } | Paging::CursorFlat { .. }) => {
                let after = match style {
                    Paging::Cursor { .. } => page.cursor_after.clone(),
                    _ => page.cursor.clone(),
                };
                if after.is_some() && after == before {
                    return Err(Incompleteness::PageRepeated);
                }
                Ok(after.map(|cursor| Self::Cursor(Some(cursor))))
            }
            _ => Ok(None),
        }
    }
}

/// What `result_info` says. Which members it has differs by product.
struct PageInfo {
    rows: usize,
    number: Option<u64>,
    per_page: Option<u64>,
    total_pages: Option<u64>,
    total_count: Option<u64>,
    cursor: Option<String>,
    cursor_after: Option<String>,
}

impl PageInfo {
    fn read(answer: &Answer, rows: usize) -> Self {
        let info = answer.result_info.as_ref();
        let number = |name: &str| info.and_then(|info| info.get(name)).and_then(Value::as_u64);
        let text = |pointer: &str| {
            let text = info.and_then(|info| info.pointer(pointer)).and_then(Value::as_str);
            text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
        };
        Self {
            rows,
            number: number("page"),
            per_page: number("per_page"),
            total_pages: number("total_pages"),
            total_count: number("total_count"),
            cursor: text("/cursor"),
            cursor_after: text("/cursors/after"),
        }
    }
}

/// The rows read so far.
#[derive(Default)]
struct Listing {
    rows: Vec<Box<RawValue>>,
    seen: HashSet<u64>,
    total_count: Option<u64>,
    pages: u32,
}

impl Listing {
    fn add(&mut self, rows: Vec<Box<RawValue>>, page: &PageInfo) -> Result<(), Incompleteness> {
        self.pages += 1;
        if self.pages > 1 && page.total_count != self.total_count {
            return Err(Incompleteness::Moving);
        }
        self.total_count = page.total_count;
        let hashes: Vec<u64> = rows.iter().map(|row| hash(row)).collect();
        if hashes.iter().any(|hash| self.seen.contains(hash)) {
            // A row of an earlier page again: it moved over the boundary of the pages, and another one may have moved
            // the other way and be missing. Or the server ignores which page is asked for.
            return Err(Incompleteness::PageRepeated);
        }
        self.seen.extend(hashes);
        self.rows.extend(rows);
        Ok(())
    }

    /// The rows, if they are as many as Cloudflare counts.
    fn finish(self) -> Result<Vec<Box<RawValue>>, Incompleteness> {
        let listed = self.rows.len() as u64;
        match self.total_count {
            Some(total) if total != listed => Err(Incompleteness::CountDiffers { total, listed }),
            _ => Ok(self.rows),
        }
    }
}

fn hash(row: &RawValue) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.get().hash(&mut hasher);
    hasher.finish()
}
