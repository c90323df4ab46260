//! What the user allows: annotations first, then the account, then the operator's default.

use std::time::Duration;

use kflare_api::names;
use serde::{Deserialize, Serialize};

use crate::{
    annotations,
    kind::SpecError,
    mutation::{self, Mutation},
    object::Object,
};

/// What to do with an object that already exists at Cloudflare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adoption {
    /// Leave it alone and say `AlreadyExists`.
    Never,
    /// Take it; never create one.
    Adopt,
    /// Take it, or create one if there is none.
    AdoptOrCreate,
    /// Take it only if nothing would change; never create one.
    IfMatching,
}

/// What to do with the remote object when the resource goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// Delete what kflare created, keep what it adopted.
    DeleteCreated,
    /// Delete it, adopted or not. Only ever by the resource's own annotation.
    Delete,
    /// Keep it.
    Retain,
}

/// What kflare may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything.
    Manage,
    /// Nothing at Cloudflare: the plan is reported in status.
    Observe,
}

/// The operator's default deletion policy (`--default-deletion-policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultDeletion {
    /// Delete what kflare created, keep what it adopted.
    #[default]
    Delete,
    /// Keep everything.
    Retain,
}

/// When to compare with Cloudflare although nothing changed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftCheck {
    /// Never.
    Off,
    /// That often, ±10 %.
    Every(Duration),
}

impl DriftCheck {
    /// `0` means off.
    pub fn from_duration(interval: Duration) -> Self {
        if interval.is_zero() {
            Self::Off
        } else {
            Self::Every(interval)
        }
    }
}

/// The policy of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Existing objects.
    pub adoption: Adoption,
    /// Deletion.
    pub deletion: Deletion,
    /// Manage or observe.
    pub mode: Mode,
    /// Scheduled drift checks.
    pub drift_check: DriftCheck,
}

/// Whether the resource is paused. Only `"true"` pauses; anything else than `"true"`, `"false"` or nothing is refused by
/// [`policy_of`], but while it stands the resource counts as paused: doubt never writes.
pub fn is_paused(object: &Object) -> bool {
    !matches!(object.annotation(names::PAUSED), None | Some("false" | "")) && !mutation::is(Mutation::PauseIgnored)
}

/// Whether the object of `object` is not to be touched at present: paused, observed, or with a mode that is not known.
pub fn stands_still(object: &Object) -> bool {
    is_paused(object) || !matches!(object.annotation(names::MODE), None | Some("" | "manage"))
}

/// The policy of `object`, or what is wrong with its annotations.
pub fn policy_of(
    object: &Object,
    account_deletion: Option<&str>,
    default_deletion: DefaultDeletion,
    default_drift: DriftCheck,
) -> Result<Policy, SpecError> {
    annotations::check_spelling(object)?;
    let adoption = match object.annotation(names::ADOPTION_POLICY) {
        None | Some("") => Adoption::Never,
        Some("adopt") => Adoption::Adopt,
        Some("adopt-or-create") => Adoption::AdoptOrCreate,
        Some("adopt-if-matching") => Adoption::IfMatching,
        Some(other) => {
            return Err(bad(
                names::ADOPTION_POLICY,
                other,
                "adopt, adopt-or-create, adopt-if-matching, or no annotation",
            ));
        }
    };
    let deletion = match object.annotation(names::DELETION_POLICY) {
        Some("delete") => Deletion::Delete,
        Some("retain") => Deletion::Retain,
        Some("") | None => match (account_deletion, default_deletion) {
            (Some("retain"), _) | (None, DefaultDeletion::Retain) => Deletion::Retain,
            _ => Deletion::DeleteCreated,
        },
        Some(other) => return Err(bad(names::DELETION_POLICY, other, "delete, retain, or no annotation")),
    };
    let mode = match object.annotation(names::MODE) {
        None | Some("" | "manage") => Mode::Manage,
        Some("observe") => Mode::Observe,
        Some(other) => return Err(bad(names::MODE, other, "observe, manage, or no annotation")),
    };
    let drift_check = match object.annotation(names::DRIFT_CHECK_INTERVAL) {
        None | Some("") => default_drift,
        Some(text) => match parse_duration(text) {
            Some(interval) if interval.is_zero() || interval >= Duration::from_secs(10) => {
                DriftCheck::from_duration(interval)
            }
            _ => {
                return Err(bad(
                    names::DRIFT_CHECK_INTERVAL,
                    text,
                    "a duration such as 90s, 10m or 1h (at least 10s), or 0s for off",
                ));
            }
        },
    };
    Ok(Policy {
        adoption,
        deletion,
        mode,
        drift_check,
    })
}

fn bad(annotation: &str, value: &str, allowed: &str) -> SpecError {
    SpecError::new(
        format!("metadata.annotations[{annotation}]"),
        format!("{value:?} is not known; use {allowed}"),
    )
}

/// Parses durations as Kubernetes tools write them: `90s`, `10m`, `1h30m`, `500ms`, `0`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest.get(..digits)?.parse().ok()?;
        let tail = rest.get(digits..)?;
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let factor = match tail.get(..unit_end)? {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        total = total.checked_add(Duration::try_from_secs_f64(number * factor).ok()?)?;
        rest = tail.get(unit_end..)?;
    }
    (!text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Json, TextMap},
        object::ObjectKey,
    };

    fn object(annotations: &[(&str, &str)]) -> Object {
        Object {
            key: ObjectKey::new("Thing", Some("ns"), "a"),
            uid: "u".into(),
            resource_version: "1".into(),
            generation: 1,
            created: None,
            deleting: false,
            finalizers: vec![],
            labels: TextMap::default(),
            annotations: annotations
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
            spec: Json::default(),
            status: Json::default(),
        }
    }

    fn policy(
        annotations: &[(&str, &str)],
        account: Option<&str>,
        default: DefaultDeletion,
    ) -> Result<Policy, SpecError> {
        policy_of(&object(annotations), account, default, DriftCheck::Off)
    }

    #[test]
    fn deletion_goes_from_resource_to_account_to_operator() {
        let d = DefaultDeletion::Delete;
        assert_eq!(policy(&[], None, d).unwrap().deletion, Deletion::DeleteCreated);
        assert_eq!(
            policy(&[], None, DefaultDeletion::Retain).unwrap().deletion,
            Deletion::Retain
        );
        assert_eq!(policy(&[], Some("retain"), d).unwrap().deletion, Deletion::Retain);
        assert_eq!(
            policy(&[], Some("delete"), DefaultDeletion::Retain).unwrap().deletion,
            Deletion::DeleteCreated
        );
        let own = [(names::DELETION_POLICY, "delete")];
        assert_eq!(policy(&own, Some("retain"), d).unwrap().deletion, Deletion::Delete);
    }

    #[test]
    fn an_unknown_value_names_the_annotation_and_the_way_out() {
        for name in [
            names::ADOPTION_POLICY,
            names::DELETION_POLICY,
            names::MODE,
            names::DRIFT_CHECK_INTERVAL,
        ] {
            let error = policy(&[(name, "yes-please")], None, DefaultDeletion::Delete)
                .unwrap_err()
                .to_string();
            assert!(error.contains(name) && error.contains("use "), "{error}");
        }
    }

    #[test]
    fn doubt_about_pause_pauses() {
        for (value, paused) in [
            ("true", true),
            ("True", true),
            ("1", true),
            ("false", false),
            ("", false),
        ] {
            assert_eq!(is_paused(&object(&[(names::PAUSED, value)])), paused, "{value:?}");
        }
        assert!(!is_paused(&object(&[])));
    }

    #[test]
    fn durations() {
        let secs = |s| Some(Duration::from_secs(s));
        assert_eq!(parse_duration("90s"), secs(90));
        assert_eq!(parse_duration("1h30m"), secs(5400));
        assert_eq!(parse_duration("0s"), secs(0));
        assert_eq!(parse_duration("0"), secs(0));
        assert_eq!(parse_duration("500ms"), Some(Duration::from_millis(500)));
        for bad in ["", "10", "m", "1d", "-5s", "1h 3m", "9999999999999999999999999h"] {
            assert_eq!(parse_duration(bad), None, "{bad:?}");
        }
    }
}
