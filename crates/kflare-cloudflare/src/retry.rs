//! When a GET is tried again, and after how long.

use std::time::Duration;

use rand::Rng;

use crate::answer::is_cut_off;
use crate::api_error::ApiError;
use crate::error::Error;

/// Attempts in total, for a failure that passes.
const MAX_ATTEMPTS: u32 = 3;
/// The shortest pause before the next attempt.
const SHORTEST: Duration = Duration::from_millis(250);
/// The longest pause before the next attempt.
const LONGEST: Duration = Duration::from_secs(4);

/// Cloudflare's "Authentication error".
const AUTHENTICATION_ERROR: i64 = 10_000;

/// The attempts of one GET so far.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failed: u32,
    doubted_authentication: u32,
}

impl Attempts {
    /// Counts a failed attempt. Says whether another one makes sense.
    ///
    /// Passing failures get [`MAX_ATTEMPTS`] in all. An authentication error gets one more try: it was seen live that a
    /// few calls with a good token were refused and the next ones were not.
    pub(crate) fn may_try_again(&mut self, error: &Error) -> bool {
        self.failed += 1;
        if self.failed >= MAX_ATTEMPTS {
            return false;
        }
        match error {
            Error::Transport { .. } => true,
            Error::Decode { .. } => is_cut_off(error),
            Error::Api(api) if is_authentication_error(api) => {
                self.doubted_authentication += 1;
                self.doubted_authentication == 1
            }
            Error::Api(api) => api.status >= 500 || api.status == 408,
            _ => false,
        }
    }

    /// The pause before the next attempt: at random from 250 ms to 1 s, then to 4 s.
    pub(crate) fn pause(&self, rng: &mut impl Rng) -> Duration {
        let longest = SHORTEST.saturating_mul(4_u32.saturating_pow(self.failed)).min(LONGEST);
        rng.random_range(SHORTEST..=longest)
    }
}

fn is_authentication_error(api: &ApiError) -> bool {
    matches!(api.status, 401 | 403) && api.has_code(AUTHENTICATION_ERROR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    fn refusal(status: u16, code: i64) -> Error {
        Error::Api(Box::new(ApiError {
            status,
            messages: vec![Message {
                code: Some(code),
                text: String::new(),
                pointer: None,
                chain: Vec::new(),
            }],
            ray: None,
            method: http::Method::GET,
            route: "/x",
        }))
    }

    #[test]
    fn passing_failures_get_three_attempts() {
        for error in [refusal(500, 1), refusal(408, 1), refusal(530, 1)] {
            let mut attempts = Attempts::default();
            assert!(attempts.may_try_again(&error) && attempts.may_try_again(&error));
            assert!(!attempts.may_try_again(&error));
        }
    }

    #[test]
    fn an_authentication_error_gets_one_more_try_and_others_none() {
        let mut attempts = Attempts::default();
        assert!(attempts.may_try_again(&refusal(403, 10_000)));
        assert!(!attempts.may_try_again(&refusal(403, 10_000)));
        for error in [
            refusal(403, 9109),
            refusal(400, 10_000),
            refusal(404, 1),
            refusal(200, 1),
        ] {
            assert!(!Attempts::default().may_try_again(&error), "{error}");
        }
    }

    #[test]
    fn pauses_lie_between_the_bounds_and_follow_the_seed() {
        let draw = |seed, failed| {
            Attempts {
                failed,
                doubted_authentication: 0,
            }
            .pause(&mut SmallRng::seed_from_u64(seed))
        };
        for seed in 0..200 {
            assert!((SHORTEST..=SHORTEST * 4).contains(&draw(seed, 1)));
            assert!((SHORTEST..=LONGEST).contains(&draw(seed, 2)));
            assert!((SHORTEST..=LONGEST).contains(&draw(seed, 9)));
            assert_eq!(draw(seed, 1), draw(seed, 1));
        }
        assert!((0..200).any(|seed| draw(seed, 2) > SHORTEST * 8));
    }
}
