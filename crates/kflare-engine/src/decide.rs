//! The decision: pure, synchronous, a value in and a value out. No clock, no network, no store.

use jiff::Timestamp;

use crate::{
    kind::{Desired, KindDescriptor, Lifecycle, Remote},
    mutation::{self, Mutation},
    object::{ObjectKey, Origin, Recorded},
    order::Placement,
    plan::{Change, POSITION, Plan, diff, field_names},
    policy::{Adoption, Deletion},
    reason::Reason,
};

/// What was seen at Cloudflare.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Observed {
    /// The object of the recorded id. None: nothing is recorded, or it is confirmed gone.
    pub recorded: Option<Remote>,
    /// Objects in the same place, those of the same group among them. Only needed when `recorded` is none.
    pub candidates: Vec<Remote>,
    /// Where the recorded object belongs, if it stands elsewhere.
    pub placement: Option<Placement>,
}

/// Who claims a remote id, other than the resource decided about.
pub trait Claims {
    /// The resource that manages `id`.
    fn holder(&self, id: &str) -> Option<ObjectKey>;

    /// The resource whose create, not seen to the end, may have made `remote`.
    fn announcer(&self, remote: &Remote) -> Option<ObjectKey>;
}

/// Everything a decision rests on.
pub struct Situation<'a> {
    /// The kind.
    pub descriptor: &'a KindDescriptor,
    /// The time at Cloudflare.
    pub now: Timestamp,
    /// What the spec asks for.
    pub desired: &'a Desired,
    /// What Cloudflare has.
    pub observed: &'a Observed,
    /// What status remembers.
    pub recorded: &'a Recorded,
    /// The container the object belongs in.
    pub scope: &'a str,
    /// What the user allows about existing objects.
    pub adoption: Adoption,
    /// Who manages what.
    pub claims: &'a dyn Claims,
}

/// Decides about a resource that is to exist.
pub fn decide(situation: &Situation<'_>) -> Plan {
    if let Some(remote) = &situation.observed.recorded {
        return decide_known(situation, remote);
    }
    if situation.descriptor.lifecycle == Lifecycle::Verified {
        return blocked(
            Reason::TERMINAL_ERROR,
            "Cloudflare does not know this object".to_owned(),
        );
    }
    if let Some(remote) = left_behind(situation) {
        return Plan::Recover {
            id: remote.id.clone(),
            changes: changes(situation, remote),
        };
    }
    decide_new(situation)
}

fn decide_known(situation: &Situation<'_>, remote: &Remote) -> Plan {
    if let Some(holder) = situation.claims.holder(&remote.id) {
        return claimed(situation, &remote.id, &holder);
    }
    let mut changes = changes(situation, remote);
    changes.extend(situation.observed.placement.as_ref().map(moved));
    if changes.is_empty() {
        return Plan::NoOp { id: remote.id.clone() };
    }
    if let Some(why) = &remote.locked {
        return Plan::Blocked {
            reason: situation.descriptor.reasons.locked.clone(),
            message: format!("{} is {why} and cannot be changed", remote.id),
            changes,
        };
    }
    if situation.descriptor.lifecycle == Lifecycle::Verified {
        let found = changes.iter().map(Change::to_string).collect::<Vec<_>>().join("; ");
        return Plan::Blocked {
            reason: Reason::TERMINAL_ERROR,
            message: format!("not as it must be: {found}"),
            changes,
        };
    }
    let id = remote.id.clone();
    if changes
        .iter()
        .any(|change| situation.descriptor.fields.immutable.contains(&change.path.as_str()))
    {
        Plan::Replace { id, changes }
    } else {
        Plan::Update { id, changes }
    }
}

/// The object that an interrupted create left behind: made in the intended container after the intent, and exactly what
/// was to be made. Several can fit only if others made equal ones later; the oldest is ours.
fn left_behind<'a>(situation: &'a Situation<'_>) -> Option<&'a Remote> {
    let intent = situation
        .recorded
        .intent
        .as_ref()
        .filter(|intent| intent.scope == situation.scope)?;
    situation
        .observed
        .candidates
        .iter()
        .filter(|remote| intent.made(remote, situation.descriptor.nature, situation.now))
        .filter(|remote| situation.claims.holder(&remote.id).is_none())
        .min_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)))
}

fn decide_new(situation: &Situation<'_>) -> Plan {
    let Situation {
        desired,
        observed,
        adoption,
        ..
    } = situation;
    let group: Vec<&Remote> = observed
        .candidates
        .iter()
        .filter(|it| it.key.group == desired.key.group)
        .collect();
    let exact = group
        .iter()
        .copied()
        .find(|remote| remote.key.member == desired.key.member);
    if let Some(remote) = exact {
        return match taken(situation, remote) {
            Some(holder) => claimed(situation, &remote.id, &holder),
            None => decide_existing(situation, remote),
        };
    }
    let free: Vec<&Remote> = group
        .iter()
        .copied()
        .filter(|it| taken(situation, it).is_none())
        .collect();
    match (group.as_slice(), free.as_slice(), adoption) {
        // One object of that group is all there can be, and somebody has it.
        ([first, ..], [], _) if desired.exclusive => match taken(situation, first) {
            Some(holder) => claimed(situation, &first.id, &holder),
            None => create(situation),
        },
        // There should be no more than one; where somebody has made more, none is added to them.
        (_, [first, ..], _) if desired.exclusive => decide_existing(situation, first),
        // A member of a set: the user asked for an existing one, and there is just one it can be.
        ([only], [_], Adoption::Adopt | Adoption::AdoptOrCreate | Adoption::IfMatching) => {
            decide_existing(situation, only)
        }
        (_, _, Adoption::Never | Adoption::AdoptOrCreate) => create(situation),
        (all, _, Adoption::Adopt | Adoption::IfMatching) => nothing_to_adopt(all.len()),
    }
}

/// The resource that manages `remote`, or is about to: adopted by another, what kflare has made for it would stay behind when
/// both are deleted.
fn taken(situation: &Situation<'_>, remote: &Remote) -> Option<ObjectKey> {
    let claims = situation.claims;
    claims.holder(&remote.id).or_else(|| claims.announcer(remote))
}

fn create(situation: &Situation<'_>) -> Plan {
    Plan::Create {
        changes: diff(
            &situation.desired.body,
            &serde_json::Map::new(),
            situation.descriptor.fields,
        ),
    }
}

fn decide_existing(situation: &Situation<'_>, remote: &Remote) -> Plan {
    let changes = changes(situation, remote);
    if let Some(why) = &remote.locked {
        return Plan::Blocked {
            reason: situation.descriptor.reasons.locked.clone(),
            message: format!("{} is {why} and cannot be adopted", remote.id),
            changes,
        };
    }
    let differs = if changes.is_empty() {
        "nothing".to_owned()
    } else {
        field_names(&changes)
    };
    match situation.adoption {
        Adoption::Adopt | Adoption::AdoptOrCreate => Plan::Adopt {
            id: remote.id.clone(),
            changes,
        },
        Adoption::IfMatching if changes.is_empty() => Plan::Adopt {
            id: remote.id.clone(),
            changes,
        },
        Adoption::IfMatching => Plan::Blocked {
            reason: Reason::ADOPTION_BLOCKED,
            message: format!(
                "{} exists and differs in {differs}; make the spec match, or set kflare.dev/adoption-policy to adopt",
                remote.id
            ),
            changes,
        },
        Adoption::Never if mutation::is(Mutation::AdoptionWithoutConsent) => Plan::Adopt {
            id: remote.id.clone(),
            changes,
        },
        Adoption::Never => Plan::Blocked {
            reason: situation.descriptor.reasons.exists.clone(),
            message: format!(
                "{} exists at Cloudflare and is left alone; adopting it (annotation kflare.dev/adoption-policy: adopt) would change {differs}",
                remote.id
            ),
            changes,
        },
    }
}

fn nothing_to_adopt(found: usize) -> Plan {
    let message = if found == 0 {
        "kflare.dev/adoption-policy asks to adopt an existing object, and there is none; use adopt-or-create to create it".to_owned()
    } else {
        format!(
            "kflare.dev/adoption-policy asks to adopt an existing object, and none of the {found} of that name is equal; make the spec match one of them"
        )
    };
    blocked(Reason::NOTHING_TO_ADOPT, message)
}

fn claimed(situation: &Situation<'_>, id: &str, holder: &ObjectKey) -> Plan {
    blocked(
        situation.descriptor.reasons.claimed.clone(),
        format!("{id} is managed by {holder}; delete one of the two resources"),
    )
}

/// A change of place, as a change of a field.
fn moved(placement: &Placement) -> Change {
    Change {
        path: POSITION.to_owned(),
        from: placement.from.into(),
        to: placement.beside.as_str().into(),
        secret: false,
    }
}

fn blocked(reason: Reason, message: String) -> Plan {
    Plan::Blocked {
        reason,
        message,
        changes: Vec::new(),
    }
}

fn changes(situation: &Situation<'_>, remote: &Remote) -> Vec<Change> {
    diff(&situation.desired.body, &remote.body, situation.descriptor.fields)
}

/// Decides about a resource that is being deleted. `left_behind` is the object of an interrupted create, if one was found.
pub fn decide_deletion(recorded: &Recorded, left_behind: Option<&Remote>, deletion: Deletion) -> Plan {
    let (id, origin) = match (&recorded.id, left_behind) {
        (Some(id), _) => (id, recorded.origin.unwrap_or(Origin::Adopted)),
        (None, Some(remote)) => (&remote.id, Origin::Created),
        (None, None) => {
            return Plan::Forget {
                why: "nothing was created or adopted".to_owned(),
            };
        }
    };
    match (deletion, origin) {
        (Deletion::Retain, _) if mutation::is(Mutation::RetainIgnored) => Plan::Delete { id: id.clone() },
        (_, Origin::Adopted) if mutation::is(Mutation::AdoptedDeleted) => Plan::Delete { id: id.clone() },
        (Deletion::Delete, _) | (Deletion::DeleteCreated, Origin::Created) => Plan::Delete { id: id.clone() },
        (Deletion::Retain, _) => Plan::Forget {
            why: "the deletion policy is retain".to_owned(),
        },
        (Deletion::DeleteCreated, Origin::Adopted) => Plan::Forget {
            why: "it was adopted, not created by kflare".to_owned(),
        },
    }
}
