//! The router table: which calls are modelled, who may make them, and who answers them.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::areas;
use crate::auth::{Access, Caller};
use crate::budget::Policy;
use crate::config::{Activation, BulkOperations, Quirks};
use crate::envelope::{Refusal, Reply};
use crate::ids::{is_hex32, is_uuid};
use crate::paging::Query;
use crate::state::{Point, World, Zone};

/// Where the API lives.
pub(crate) const BASE: &str = "/client/v4";

/// One modelled route.
pub(crate) struct Route {
    pub(crate) method: &'static str,
    /// The path below [`BASE`], parameters in braces.
    pub(crate) template: &'static str,
    pub(crate) access: Access,
    pub(crate) answers: Answers,
    pub(crate) policy: Policy,
    pub(crate) handler: Handler,
}

/// What a route answers with: lists can be stale or empty by fault, the rules of a ruleset stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    List,
    Rules,
    Other,
}

pub(crate) type Handler = fn(&mut Call<'_>) -> Result<Reply, Refusal>;

/// A call on its way to a handler.
pub(crate) struct Call<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) params: &'a Params,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) caller: &'a Caller,
    pub(crate) quirks: Quirks,
    pub(crate) activation: Activation,
    pub(crate) billing_period: Duration,
    pub(crate) bulk_operations: BulkOperations,
    pub(crate) now: Timestamp,
    /// The past that lists are to show.
    pub(crate) view: Option<Point>,
}

impl Call<'_> {
    /// A path parameter of the route's template.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.get(name)
    }

    /// A header that is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as a JSON object.
    pub(crate) fn json(&self) -> Result<Map<String, Value>, Refusal> {
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(body)) => Ok(body),
            // The code is documented, its text is not.
            _ => Err(Refusal::new(400, 6007, "Malformed JSON in request body")),
        }
    }

    /// The zone in the path. Access has been checked, so it exists unless the route lets everybody in.
    pub(crate) fn zone(&self) -> Result<Zone, Refusal> {
        self.world
            .zone(self.param("zone_id"))
            .map(|zone| Zone::clone(zone))
            .ok_or_else(areas::zones::unknown)
    }
}

/// The path parameters of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(BTreeMap<&'static str, String>);

impl Params {
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether every id in the path has the form of one.
    pub(crate) fn are_well_formed(&self) -> bool {
        self.0.iter().all(|(name, value)| {
            (!HEX_IDS.contains(name) || is_hex32(value)) && (!UUIDS.contains(name) || is_uuid(value))
        })
    }
}

/// Parameters whose values are 32 hex digits.
const HEX_IDS: [&str; 9] = [
    "account_id",
    "zone_id",
    "dns_record_id",
    "namespace_id",
    "list_id",
    "ruleset_id",
    "rule_id",
    "route_id",
    "queue_id",
];

/// Parameters whose values are UUIDs.
const UUIDS: [&str; 1] = ["tunnel_id"];

/// Every modelled route.
pub(crate) fn routes() -> &'static [&'static Route] {
    static ROUTES: OnceLock<Vec<&'static Route>> = OnceLock::new();
    ROUTES.get_or_init(|| {
        let areas: [&'static [Route]; 14] = [
            &areas::accounts::ROUTES,
            &areas::tokens::ROUTES,
            &areas::zones::ROUTES,
            &areas::dns::ROUTES,
            &areas::stores::kv::ROUTES,
            &areas::stores::r2::ROUTES,
            &areas::stores::d1::ROUTES,
            &areas::stores::queues::ROUTES,
            &areas::rulesets::ROUTES,
            &areas::lists::ROUTES,
            &areas::managed_headers::ROUTES,
            &areas::workers::ROUTES,
            &areas::worker_routes::ROUTES,
            &areas::tunnels::ROUTES,
        ];
        areas.into_iter().flatten().collect()
    })
}

/// What a path means.
pub(crate) enum Found {
    /// A modelled route.
    Route(&'static Route, Params),
    /// A route of Cloudflare's that is not modelled.
    NotModelled(&'static str),
    /// A path of Cloudflare's, but not with this method.
    OtherMethods,
    /// Nothing.
    Nothing,
}

/// The segments of a path below [`BASE`], decoded; empty ones do not count. `None` outside of it.
pub(crate) fn segments(path: &str) -> Option<Vec<String>> {
    let below = path
        .strip_prefix(BASE)
        .filter(|below| below.is_empty() || below.starts_with('/'))?;
    let decode = |segment: &str| {
        percent_encoding::percent_decode_str(segment)
            .decode_utf8_lossy()
            .into_owned()
    };
    Some(
        below
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(decode)
            .collect(),
    )
}

/// Looks up the route of a call.
pub(crate) fn find(method: &str, segments: &[String]) -> Found {
    let modelled = routes()
        .iter()
        .filter(|route| route.method == method)
        .filter_map(|route| bind(route.template, segments).map(|(params, literals)| (literals, *route, params)))
        .max_by_key(|(literals, _, _)| *literals);
    match (modelled, published(method, segments)) {
        // A published route that fits more literally is the one that is meant: `/dns_records/usage` is no record id.
        (Some((literals, _, _)), Some((better, template))) if better > literals => Found::NotModelled(template),
        (Some((_, route, params)), _) => Found::Route(route, params),
        (None, Some((_, template))) => Found::NotModelled(template),
        (None, None) if METHODS.iter().any(|other| published(other, segments).is_some()) => Found::OtherMethods,
        (None, None) => Found::Nothing,
    }
}

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Matches a path with a template. Returns the parameters and how many segments match literally.
fn bind(template: &'static str, segments: &[String]) -> Option<(Params, usize)> {
    let pattern = template.split('/').filter(|segment| !segment.is_empty());
    let mut params = Params::default();
    let mut literals = 0;
    let mut given = segments.iter();
    for expected in pattern {
        let given = given.next()?;
        match expected.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => drop(params.0.insert(name, given.clone())),
            None if expected == given => literals += 1,
            None => return None,
        }
    }
    given.next().is_none().then_some((params, literals))
}

/// Every route that Cloudflare publishes, by method, number of segments and first segment (empty where that is a
/// parameter): the few that a path can fit.
type Published = BTreeMap<(&'static str, usize, &'static str), Vec<Template>>;

/// A published template and its segments.
struct Template {
    text: &'static str,
    segments: Vec<&'static str>,
}

fn catalogue() -> &'static Published {
    static CATALOGUE: OnceLock<Published> = OnceLock::new();
    CATALOGUE.get_or_init(|| {
        let mut published = Published::new();
        for line in include_str!("../api/routes.tsv")
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            if let Some((method, text)) = line.split_once('\t') {
                let segments: Vec<_> = text.split('/').filter(|segment| !segment.is_empty()).collect();
                let first = segments
                    .first()
                    .filter(|first| !first.contains('{'))
                    .copied()
                    .unwrap_or_default();
                published
                    .entry((method, segments.len(), first))
                    .or_default()
                    .push(Template { text, segments });
            }
        }
        published
    })
}

/// The published template that fits a path most literally, and how many segments match literally.
fn published(method: &str, segments: &[String]) -> Option<(usize, &'static str)> {
    let first = segments.first().map_or("", String::as_str);
    let keys = [(method, segments.len(), first), (method, segments.len(), "")];
    let catalogue: &BTreeMap<(&str, usize, &str), Vec<Template>> = catalogue();
    let candidates = keys.iter().filter_map(|key| catalogue.get(key)).flatten();
    candidates
        .filter_map(|template| template.fits(segments).map(|literals| (literals, template.text)))
        .max()
}

impl Template {
    /// As [`bind`] without parameters; a segment that holds a parameter anywhere matches everything.
    fn fits(&self, segments: &[String]) -> Option<usize> {
        let mut literals = 0;
        for (expected, given) in self.segments.iter().zip(segments) {
            if expected.contains('{') {
                continue;
            }
            if expected != given {
                return None;
            }
            literals += 1;
        }
        Some(literals)
    }
}
