//! Faults: answers that go wrong on purpose.

use rand::Rng;
use rand::rngs::SmallRng;
use regex_lite::Regex;
use serde::{Deserialize, Serialize};

use crate::config::Dropped;
use crate::route::Answers;

/// A fault to inject. It fires on every call that it matches, after the first `skip` of them, at most `times` times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// Which calls it matches.
    #[serde(default, rename = "match")]
    pub matches: FaultMatch,
    /// What goes wrong.
    pub fault: Fault,
    /// How often it fires; `None`: for ever.
    #[serde(default)]
    pub times: Option<u64>,
    /// How many matching calls go well first.
    #[serde(default)]
    pub skip: u64,
    /// The chance that it fires on a matching call, 0 to 1, drawn from the simulator's seed; `None`: always. A call that is
    /// spared counts neither for `skip` nor for `times`.
    #[serde(default)]
    pub probability: Option<f64>,
}

impl FaultSpec {
    /// A fault on every matching call.
    pub fn new(matches: FaultMatch, fault: Fault) -> Self {
        Self {
            matches,
            fault,
            times: None,
            skip: 0,
            probability: None,
        }
    }

    /// At most so many times.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    /// Not on the first so many matching calls.
    #[must_use]
    pub fn skip(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Only with this chance, 0 to 1.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.probability = Some(probability);
        self
    }
}

/// Which calls a fault matches: those that fit everything given here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaultMatch {
    /// The method, in any case.
    pub method: Option<String>,
    /// The template of the route, for example `/zones/{zone_id}/dns_records`.
    pub route: Option<String>,
    /// A regular expression, searched for in path and query.
    pub path: Option<String>,
    /// The id of the token.
    pub token_id: Option<String>,
    /// The page of a list, from 1; calls without a `page` ask for the first.
    pub page: Option<u64>,
}

impl FaultMatch {
    /// Every call.
    pub fn any() -> Self {
        Self::default()
    }

    /// Calls of one route.
    pub fn route(method: &str, template: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            route: Some(template.to_owned()),
            ..Self::default()
        }
    }

    /// Calls whose path and query hold a match of this regular expression.
    pub fn path(method: &str, pattern: &str) -> Self {
        Self {
            method: Some(method.to_owned()),
            path: Some(pattern.to_owned()),
            ..Self::default()
        }
    }

    /// Only this page of a list.
    #[must_use]
    pub fn page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }

    /// Only calls with this token.
    #[must_use]
    pub fn token(mut self, id: &str) -> Self {
        self.token_id = Some(id.to_owned());
        self
    }
}

/// What goes wrong. `Delay` adds to the others; of the others the first that fires counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// An error in the envelope, without any effect.
    Status {
        /// The HTTP status.
        status: u16,
        /// The code of the error.
        code: i64,
        /// The text of the error.
        message: String,
    },
    /// A page of HTML, as proxies on the way send, without any effect.
    Html {
        /// The HTTP status.
        status: u16,
        /// The page.
        body: String,
    },
    /// The answer comes later.
    Delay {
        /// By so many milliseconds.
        ms: u64,
    },
    /// The connection drops before the call has an effect.
    DropBefore {
        /// What the caller sees; unset: what the simulator is set to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dropped: Option<Dropped>,
    },
    /// The connection drops, and the call is carried out later all the same, free of faults. The log of calls has it then once
    /// more, as answered.
    Late {
        /// After so many milliseconds.
        ms: u64,
        /// What the caller sees; unset: what the simulator is set to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dropped: Option<Dropped>,
    },
    /// The call has its effect, and the connection drops before the answer.
    DropAfter {
        /// What the caller sees; unset: what the simulator is set to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dropped: Option<Dropped>,
    },
    /// The call has its effect, and the answer's body ends early, with a connection error.
    Truncate {
        /// After so many bytes.
        bytes: usize,
    },
    /// A list shows the past. Give `seconds` or `mark`; an unknown mark shows the present.
    StaleList {
        /// So many seconds back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seconds: Option<u64>,
        /// As it was when this mark was set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mark: Option<String>,
    },
    /// A list shows nothing.
    EmptyList {
        /// What the list says about its length.
        #[serde(default)]
        totals: Totals,
    },
    /// 429, without any effect.
    RateLimited {
        /// Seconds in the `retry-after` header; `None`: no such header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u64>,
    },
}

/// What an empty list says about its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Totals {
    /// Nothing is there.
    #[default]
    Zero,
    /// The true number, so that the list contradicts itself.
    True,
}

/// A fault that was added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FaultState {
    /// Its number, by which it can be removed.
    pub id: u64,
    /// How many calls it matched.
    pub matched: u64,
    /// How many times it fired.
    pub fired: u64,
    /// What it is.
    pub spec: FaultSpec,
}

/// The fault cannot be added.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    /// `match.path` is no regular expression.
    #[error("{pattern:?} is no regular expression")]
    Pattern {
        /// What was given.
        pattern: String,
        /// Why not.
        source: regex_lite::Error,
    },
    /// `probability` is not between 0 and 1.
    #[error("a probability is between 0 and 1, not {0}")]
    Probability(f64),
}

/// A call, as far as faults look at it.
pub(crate) struct Probe<'a> {
    pub(crate) method: &'a str,
    pub(crate) template: Option<&'static str>,
    pub(crate) answers: Answers,
    pub(crate) path_and_query: &'a str,
    pub(crate) token_id: Option<&'a str>,
    pub(crate) page: u64,
}

/// What fired on a call.
#[derive(Debug, Default)]
pub(crate) struct Fired {
    pub(crate) fault: Option<Fault>,
    pub(crate) delay_ms: u64,
    pub(crate) ids: Vec<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Faults {
    added: u64,
    armed: Vec<Armed>,
}

#[derive(Debug)]
struct Armed {
    state: FaultState,
    pattern: Option<Regex>,
}

impl Faults {
    pub(crate) fn add(&mut self, spec: FaultSpec) -> Result<u64, FaultError> {
        let compile = |pattern: &String| {
            Regex::new(pattern).map_err(|source| FaultError::Pattern {
                pattern: pattern.clone(),
                source,
            })
        };
        let pattern = spec.matches.path.as_ref().map(compile).transpose()?;
        if let Some(wrong) = spec.probability.filter(|chance| !(0.0..=1.0).contains(chance)) {
            return Err(FaultError::Probability(wrong));
        }
        self.added += 1;
        let state = FaultState {
            id: self.added,
            matched: 0,
            fired: 0,
            spec,
        };
        self.armed.push(Armed { state, pattern });
        Ok(self.added)
    }

    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.armed.len();
        self.armed.retain(|armed| armed.state.id != id);
        self.armed.len() < before
    }

    pub(crate) fn clear(&mut self) {
        self.armed.clear();
    }

    pub(crate) fn states(&self) -> Vec<FaultState> {
        self.armed.iter().map(|armed| armed.state.clone()).collect()
    }

    /// Counts the call and says what fires on it.
    pub(crate) fn fire(&mut self, probe: &Probe<'_>, rng: &mut SmallRng) -> Fired {
        let mut fired = Fired::default();
        for armed in &mut self.armed {
            let is_delay = matches!(armed.state.spec.fault, Fault::Delay { .. });
            if (fired.fault.is_some() && !is_delay) || !armed.matches(probe) {
                continue;
            }
            if !armed
                .state
                .spec
                .probability
                .is_none_or(|chance| rng.random_bool(chance))
            {
                continue;
            }
            armed.state.matched += 1;
            let spec = &armed.state.spec;
            let is_spent = spec.times.is_some_and(|times| armed.state.fired >= times);
            if armed.state.matched <= spec.skip || is_spent {
                continue;
            }
            armed.state.fired += 1;
            fired.ids.push(armed.state.id);
            match &armed.state.spec.fault {
                Fault::Delay { ms } => fired.delay_ms += ms,
                fault => fired.fault = Some(fault.clone()),
            }
        }
        fired
    }
}

impl Armed {
    fn matches(&self, probe: &Probe<'_>) -> bool {
        let wanted = &self.state.spec.matches;
        let fits_answer = match self.state.spec.fault {
            Fault::StaleList { .. } => probe.answers != Answers::Other,
            Fault::EmptyList { .. } => probe.answers == Answers::List,
            _ => true,
        };
        wanted
            .method
            .as_ref()
            .is_none_or(|method| method.eq_ignore_ascii_case(probe.method))
            && wanted
                .route
                .as_ref()
                .is_none_or(|route| Some(route.as_str()) == probe.template)
            && self
                .pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(probe.path_and_query))
            && wanted
                .token_id
                .as_ref()
                .is_none_or(|id| Some(id.as_str()) == probe.token_id)
            && wanted.page.is_none_or(|page| page == probe.page)
            && fits_answer
    }
}
