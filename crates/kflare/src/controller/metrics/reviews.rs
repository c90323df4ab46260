//! Whether a caller may read metrics: the cluster decides, by TokenReview and SubjectAccessReview.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderMap, header::AUTHORIZATION};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest, Sha256};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout},
};

/// How long an allowed token is trusted. Nothing else is remembered.
const TRUST: Duration = Duration::from_mins(1);

/// Allowed tokens remembered at a time.
const TRUSTED: usize = 64;

/// Callers whose token is being checked at a time; others wait.
const REVIEWS: usize = 4;

/// How long a check may take, waiting included.
const PATIENCE: Duration = Duration::from_secs(10);

/// Longer tokens are not passed on, in bytes. Tokens of service accounts have some 1,000.
const LONGEST_TOKEN: usize = 16 * 1024;

/// Why a caller is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No token, or one that nobody knows.
    Unauthenticated,
    /// The token's holder may not.
    Forbidden,
    /// Nobody can say.
    Unavailable,
}

/// Asks the cluster.
pub(super) struct Reviewer {
    client: Client,
    trusted: Mutex<BTreeMap<Fingerprint, Instant>>,
    reviews: Semaphore,
    complained: AtomicBool,
}

/// SHA-256 of a token.
type Fingerprint = [u8; 32];

impl Reviewer {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            trusted: Mutex::default(),
            reviews: Semaphore::new(REVIEWS),
            complained: AtomicBool::new(false),
        }
    }

    /// Lets the caller in, or says why not.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let token = bearer_token(headers).ok_or(Refusal::Unauthenticated)?;
        let fingerprint: Fingerprint = Sha256::digest(token).into();
        if self.trusts(&fingerprint) {
            return Ok(());
        }
        let Ok(reviewed) = timeout(PATIENCE, self.review(token)).await else {
            self.complain("no answer in time");
            return Err(Refusal::Unavailable);
        };
        match reviewed {
            Ok(verdict) => {
                self.complained.store(false, Ordering::Relaxed);
                verdict?;
                self.trust(fingerprint);
                Ok(())
            }
            Err(error) => {
                self.complain(&error.to_string());
                Err(Refusal::Unavailable)
            }
        }
    }

    async fn review(&self, token: &str) -> Result<Result<(), Refusal>, ReviewError> {
        let _turn = self.reviews.acquire().await.map_err(|_| ReviewError::Closed)?;
        let Some(user) = self.authenticate(token).await? else {
            return Ok(Err(Refusal::Unauthenticated));
        };
        Ok(if self.authorize(user).await? {
            Ok(())
        } else {
            Err(Refusal::Forbidden)
        })
    }

    async fn authenticate(&self, token: &str) -> Result<Option<UserInfo>, ReviewError> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let answer = reviews
            .create(&PostParams::default(), &review)
            .await
            .map_err(ReviewError::Token)?;
        let status = answer.status.unwrap_or_default();
        Ok(if status.authenticated == Some(true) {
            status.user
        } else {
            None
        })
    }

    async fn authorize(&self, user: UserInfo) -> Result<bool, ReviewError> {
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username,
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some("/metrics".to_owned()),
                    verb: Some("get".to_owned()),
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let answer = reviews
            .create(&PostParams::default(), &review)
            .await
            .map_err(ReviewError::Access)?;
        Ok(answer
            .status
            .is_some_and(|status| status.allowed && status.denied != Some(true)))
    }

    fn trusts(&self, fingerprint: &Fingerprint) -> bool {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        trusted.retain(|_, until| Instant::now() < *until);
        trusted.contains_key(fingerprint)
    }

    fn trust(&self, fingerprint: Fingerprint) {
        let mut trusted = self.trusted.lock().unwrap_or_else(PoisonError::into_inner);
        if trusted.len() >= TRUSTED
            && let Some(oldest) = trusted
                .iter()
                .min_by_key(|(_, until)| **until)
                .map(|(oldest, _)| *oldest)
        {
            trusted.remove(&oldest);
        }
        trusted.insert(fingerprint, Instant::now() + TRUST);
    }

    /// One line per outage: callers cannot fill the log.
    fn complain(&self, why: &str) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                why,
                "callers of /metrics are turned away: their tokens cannot be checked"
            );
        }
    }
}

/// A question that got no answer.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error("TokenReview failed: {0}")]
    Token(#[source] kube::Error),
    #[error("SubjectAccessReview failed: {0}")]
    Access(#[source] kube::Error),
    #[error("no more checks")]
    Closed,
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    let fits = !token.is_empty() && token.len() <= LONGEST_TOKEN;
    (scheme.eq_ignore_ascii_case("bearer") && fits).then_some(token)
}
