//! One exchange: authorised, timed, counted, traced, and its answer read.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use tokio::time::{Instant, timeout_at};
use tower::ServiceExt;

use crate::answer::{self, Answer, Asked};
use crate::api_error::ApiError;
use crate::credential::Credential;
use crate::error::{Error, Limit, Outcome};
use crate::pool::Shared;
use crate::request::Request;
use crate::transport::{TransportError, TransportErrorKind};

/// How long the gate stays closed after a refusal that says nothing. Cloudflare documents that calls over the limit
/// are refused for the next five minutes.
const GATE_DEFAULT: Duration = Duration::from_mins(5);
/// The shortest time the gate stays closed, whatever `retry-after` says.
const GATE_SHORTEST: Duration = Duration::from_secs(1);
/// The longest time the gate stays closed, whatever `retry-after` says.
const GATE_LONGEST: Duration = Duration::from_hours(1);

/// "Please wait and consider throttling your request speed", which Cloudflare sends with various statuses, even 200.
const THROTTLE: i64 = 971;

/// Makes one exchange. The permit for it must be held by the caller.
pub(crate) async fn exchange(
    shared: &Shared,
    credential: &Credential,
    request: &Request,
    deadline: Instant,
) -> Result<Answer, Error> {
    let authorization = credential.header().map_err(Error::InvalidToken)?;
    let http = request
        .to_http(shared.options.base_url.as_str(), authorization)
        .map_err(Error::Malformed)?;
    let asked = Asked {
        method: request.method(),
        route: request.route(),
    };

    let started = Instant::now();
    let response = match timeout_at(deadline, shared.transport.clone().oneshot(http)).await {
        Ok(response) => response,
        Err(_) => Err(TransportErrorKind::Timeout.into()),
    };
    record(shared, asked, started.elapsed(), response.as_ref());
    let response = response.map_err(|source| transport_error(asked, source))?;

    if let Some(date) = answer::date(response.headers()) {
        shared.set_cloudflare_time(date);
    }
    let pause = retry_after(response.headers(), shared);
    match answer::read(asked, credential.token(), response) {
        Err(Error::Api(api)) if is_limit(request, &api, pause) => {
            let pause = pause.unwrap_or(GATE_DEFAULT).clamp(GATE_SHORTEST, GATE_LONGEST);
            let until = shared
                .scheduler
                .close_gate(credential.budget, &credential.id, Instant::now() + pause);
            Err(Error::RateLimited {
                until,
                limit: Limit::Cloudflare,
                answer: Some(api),
            })
        }
        other => other,
    }
}

/// Whether a refusal speaks of the credential: all its calls have to wait.
fn is_limit(request: &Request, api: &ApiError, retry_after: Option<Duration>) -> bool {
    let is_429 = api.status == StatusCode::TOO_MANY_REQUESTS.as_u16();
    let is_busy = is_429 && request.may_be_busy() && retry_after.is_none();
    api.has_code(THROTTLE) || (is_429 && !is_busy)
}

fn transport_error(asked: Asked<'_>, source: TransportError) -> Error {
    let outcome = match source.kind {
        TransportErrorKind::NotSent => Outcome::NotApplied,
        TransportErrorKind::Timeout | TransportErrorKind::Interrupted => Outcome::unless_get(asked.method),
    };
    Error::Transport { outcome, source }
}

fn record(
    shared: &Shared,
    asked: Asked<'_>,
    elapsed: Duration,
    response: Result<&http::Response<Bytes>, &TransportError>,
) {
    let code = match response {
        Ok(response) => response.status().as_str().to_owned(),
        Err(error) => error.kind.label().to_owned(),
    };
    let ray = response.ok().and_then(|response| answer::ray(response.headers()));
    shared
        .metrics
        .exchanged(asked.route, asked.method.as_str(), &code, elapsed.as_secs_f64());
    tracing::debug!(
        route = asked.route,
        method = asked.method.as_str(),
        status = code,
        ms = elapsed.as_secs_f64() * 1e3,
        ray,
        "call to Cloudflare"
    );
}

/// The `retry-after` header: seconds, or an HTTP date, which counts from Cloudflare's own time.
fn retry_after(headers: &HeaderMap, shared: &Shared) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = answer::http_date(text)?;
    Some(Duration::try_from(date.duration_since(shared.cloudflare_time())).unwrap_or_default())
}
