//! The decision as a table, and laws that hold for every situation.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use kflare_engine::{
    Desired, KindDescriptor, NaturalKey, Plan, Position, Reason, Remote,
    decide::{Claims, Observed, Situation, decide, decide_deletion},
    intent::Intent,
    kind::Nature,
    object::{ObjectKey, Origin, Recorded},
    order::Placement,
    plan::FieldRules,
    policy::{Adoption, Deletion},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const SCOPE: &str = "zone-1";

/// Who manages what, and who has announced it.
#[derive(Default)]
struct Holders {
    managed: BTreeMap<String, ObjectKey>,
    announced: BTreeMap<String, ObjectKey>,
}

impl Claims for Holders {
    fn holder(&self, id: &str) -> Option<ObjectKey> {
        self.managed.get(id).cloned()
    }

    fn announcer(&self, remote: &Remote) -> Option<ObjectKey> {
        self.announced.get(&remote.id).cloned()
    }
}

fn another() -> ObjectKey {
    ObjectKey::new("DNSRecord", Some("other"), "holder")
}

fn key(member: &str) -> NaturalKey {
    NaturalKey {
        group: "A www.example.com".into(),
        member: member.into(),
    }
}

fn body(content: &str, ttl: u32) -> Map<String, Value> {
    Map::from_iter([("content".to_owned(), json!(content)), ("ttl".to_owned(), json!(ttl))])
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn remote(id: &str, content: &str, ttl: u32) -> Remote {
    Remote {
        id: id.into(),
        key: key(content),
        body: body(content, ttl),
        created: Some(at(1_000)),
        ..Remote::default()
    }
}

/// A situation under construction: wants `192.0.2.1` with TTL 1.
struct Case {
    observed: Observed,
    recorded: Recorded,
    adoption: Adoption,
    exclusive: bool,
    holders: Holders,
    fields: FieldRules,
    nature: Nature,
    now: Timestamp,
}

fn case() -> Case {
    Case {
        observed: Observed::default(),
        recorded: Recorded::default(),
        adoption: Adoption::Never,
        exclusive: false,
        holders: Holders::default(),
        fields: FieldRules::default(),
        nature: Nature::default(),
        now: at(1_000),
    }
}

impl Case {
    fn recorded(mut self, remote: Remote) -> Self {
        self.recorded.id = Some(remote.id.clone());
        self.observed.recorded = Some(remote);
        self
    }

    fn seen(mut self, remotes: impl IntoIterator<Item = Remote>) -> Self {
        self.observed.candidates.extend(remotes);
        self
    }

    fn adoption(mut self, adoption: Adoption) -> Self {
        self.adoption = adoption;
        self
    }

    fn held(mut self, id: &str) -> Self {
        self.holders.managed.insert(id.into(), another());
        self
    }

    /// Another resource may have made it by a create that was not seen to the end.
    fn announced(mut self, id: &str) -> Self {
        self.holders.announced.insert(id.into(), another());
        self
    }

    /// An intent of that second, to create `member` with TTL 1.
    fn intent(mut self, second: i64, member: &str) -> Self {
        let desired = Desired {
            key: key(member),
            body: body(member, 1),
            ..Desired::default()
        };
        self.recorded.intent = Some(Intent::new(at(second), SCOPE, "main", &desired, FieldRules::default()));
        self
    }

    /// The create was seen to be over by that second.
    fn over(mut self, second: i64) -> Self {
        self.recorded.intent.as_mut().unwrap().over = Some(at(second));
        self
    }

    fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    fn decide(&self) -> Plan {
        let desired = Desired {
            key: key("192.0.2.1"),
            exclusive: self.exclusive,
            body: body("192.0.2.1", 1),
            ..Desired::default()
        };
        let descriptor = KindDescriptor {
            fields: self.fields,
            nature: self.nature,
            ..KindDescriptor::new("DNSRecord", "dnsrecords", "Record", "dns_records")
        };
        decide(&Situation {
            descriptor: &descriptor,
            now: self.now,
            desired: &desired,
            observed: &self.observed,
            recorded: &self.recorded,
            scope: SCOPE,
            adoption: self.adoption,
            claims: &self.holders,
        })
    }
}

/// The action, its id or reason, and the fields that change.
fn short(plan: &Plan) -> String {
    let subject = match plan {
        Plan::NoOp { id } | Plan::Delete { id } => id.clone(),
        Plan::Update { id, .. } | Plan::Replace { id, .. } | Plan::Adopt { id, .. } | Plan::Recover { id, .. } => {
            id.clone()
        }
        Plan::Blocked { reason, .. } | Plan::Wait { reason, .. } => reason.to_string(),
        Plan::Create { .. } | Plan::Forget { .. } => String::new(),
    };
    let changes: Vec<&str> = match plan {
        Plan::Create { .. } => Vec::new(),
        _ => plan.changes().iter().map(|change| change.path.as_str()).collect(),
    };
    [plan.action(), &subject, &changes.join(",")]
        .into_iter()
        .filter(|it| !it.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn table() {
    use Adoption::{Adopt, AdoptOrCreate, IfMatching, Never};
    let (same, other) = (|id| remote(id, "192.0.2.1", 1), |id| remote(id, "192.0.2.9", 1));
    let stale_ttl = |id| remote(id, "192.0.2.1", 300);
    let rows: Vec<(&str, Case, &str)> = vec![
        ("recorded and equal", case().recorded(same("r1")), "unchanged r1"),
        (
            "recorded and different",
            case().recorded(stale_ttl("r1")),
            "update r1 ttl",
        ),
        (
            "recorded, held by another",
            case().recorded(same("r1")).held("r1"),
            "blocked AlreadyClaimed",
        ),
        ("nothing there", case(), "create"),
        ("nothing there, adopt", case().adoption(Adopt), "blocked NothingToAdopt"),
        (
            "nothing there, adopt-if-matching",
            case().adoption(IfMatching),
            "blocked NothingToAdopt",
        ),
        (
            "nothing there, adopt-or-create",
            case().adoption(AdoptOrCreate),
            "create",
        ),
        ("equal exists", case().seen([same("x")]), "blocked AlreadyExists"),
        (
            "equal exists, adopt",
            case().seen([same("x")]).adoption(Adopt),
            "adopt x",
        ),
        (
            "equal exists, adopt-if-matching",
            case().seen([same("x")]).adoption(IfMatching),
            "adopt x",
        ),
        (
            "same identity differs",
            case().seen([stale_ttl("x")]),
            "blocked AlreadyExists ttl",
        ),
        (
            "same identity differs, adopt",
            case().seen([stale_ttl("x")]).adoption(AdoptOrCreate),
            "adopt x ttl",
        ),
        (
            "same identity differs, adopt-if-matching",
            case().seen([stale_ttl("x")]).adoption(IfMatching),
            "blocked AdoptionBlocked ttl",
        ),
        (
            "equal exists, held",
            case().seen([same("x")]).held("x").adoption(Adopt),
            "blocked AlreadyClaimed",
        ),
        (
            "equal exists, announced by another, adopt",
            case().seen([same("x")]).announced("x").adoption(Adopt),
            "blocked AlreadyClaimed",
        ),
        (
            "the only other member, announced by another",
            case().seen([other("x")]).announced("x").adoption(AdoptOrCreate),
            "create",
        ),
        (
            "announced by another too, but recorded",
            case().recorded(same("r1")).announced("r1"),
            "unchanged r1",
        ),
        ("another member of the set", case().seen([other("x")]), "create"),
        (
            "the only other member, adopt",
            case().seen([other("x")]).adoption(Adopt),
            "adopt x content",
        ),
        (
            "the only other member, held",
            case().seen([other("x")]).held("x").adoption(AdoptOrCreate),
            "create",
        ),
        (
            "two other members, adopt",
            case().seen([other("x"), remote("y", "192.0.2.8", 1)]).adoption(Adopt),
            "blocked NothingToAdopt",
        ),
        (
            "two other members, adopt-or-create",
            case()
                .seen([other("x"), remote("y", "192.0.2.8", 1)])
                .adoption(AdoptOrCreate),
            "create",
        ),
        (
            "exact among others, adopt",
            case().seen([other("x"), same("y")]).adoption(Adopt),
            "adopt y",
        ),
        (
            "one of a kind exists",
            case().seen([other("x")]).exclusive(),
            "blocked AlreadyExists content",
        ),
        (
            "several of a kind exist",
            case().seen([other("x"), remote("y", "192.0.2.8", 1)]).exclusive(),
            "blocked AlreadyExists content",
        ),
        (
            "one of a kind exists, held",
            case().seen([other("x")]).exclusive().held("x").adoption(Never),
            "blocked AlreadyClaimed",
        ),
        (
            "left behind by our create",
            case().seen([same("x")]).intent(1_000, "192.0.2.1"),
            "recover x",
        ),
        (
            "made before our intent",
            case().seen([same("x")]).intent(1_001, "192.0.2.1"),
            "blocked AlreadyExists",
        ),
        (
            "left behind, the spec has changed since",
            case().seen([other("x")]).intent(999, "192.0.2.9"),
            "recover x content",
        ),
        (
            "not what we meant to make",
            case().seen([same("x")]).intent(999, "192.0.2.9"),
            "blocked AlreadyExists",
        ),
        (
            "of that identity, but not with what we sent",
            case().seen([stale_ttl("x")]).intent(1_000, "192.0.2.1"),
            "blocked AlreadyExists ttl",
        ),
        (
            "made when the create was over",
            case().seen([same("x")]).intent(900, "192.0.2.1").over(950),
            "blocked AlreadyExists",
        ),
        (
            "made long after an intent that was never carried out",
            case().seen([same("x")]).intent(600, "192.0.2.1"),
            "blocked AlreadyExists",
        ),
    ];
    for (name, case, expected) in rows {
        assert_eq!(short(&case.decide()), expected, "{name}");
    }
}

#[test]
fn an_intent_for_another_zone_finds_nothing() {
    let mut case = case().seen([remote("x", "192.0.2.1", 1)]).intent(1_000, "192.0.2.1");
    case.recorded.intent.as_mut().unwrap().scope = "zone-2".into();
    assert_eq!(short(&case.decide()), "blocked AlreadyExists");
}

#[test]
fn what_another_product_manages_is_never_written() {
    for adoption in [
        Adoption::Never,
        Adoption::Adopt,
        Adoption::AdoptOrCreate,
        Adoption::IfMatching,
    ] {
        let mut locked = remote("x", "192.0.2.1", 300);
        locked.locked = Some("managed by Workers".into());
        assert_eq!(
            short(&case().seen([locked.clone()]).adoption(adoption).decide()),
            "blocked ReadOnly ttl"
        );
        assert_eq!(
            short(&case().recorded(locked.clone()).adoption(adoption).decide()),
            "blocked ReadOnly ttl"
        );
        assert_eq!(
            short(
                &case()
                    .seen([locked])
                    .intent(999, "192.0.2.1")
                    .adoption(adoption)
                    .decide()
            ),
            "blocked ReadOnly ttl"
        );
    }
}

#[test]
fn an_immutable_field_means_replacing() {
    let mut case = case().recorded(remote("r1", "192.0.2.1", 300));
    case.fields = FieldRules {
        immutable: &["ttl"],
        ..FieldRules::default()
    };
    assert_eq!(short(&case.decide()), "replace r1 ttl");
}

#[test]
fn without_a_creation_time_an_object_is_ours_only_shortly_after_the_intent() {
    let undated = Remote {
        created: None,
        ..remote("r1", "192.0.2.1", 1)
    };
    let mut case = case().seen([undated]).intent(1_000, "192.0.2.1");
    for (now, decided) in [
        (1_000, "recover r1 "),
        (1_300, "recover r1 "),
        (1_301, "blocked AlreadyExists "),
        (999, "blocked AlreadyExists "),
    ] {
        case.now = at(now);
        assert_eq!(short(&case.decide()).trim_end(), decided.trim_end(), "{now}");
    }
    case.nature.key_is_ours = true;
    case.now = at(90_000);
    assert_eq!(
        short(&case.decide()).trim_end(),
        "recover r1",
        "nobody else makes one of that key"
    );
}

#[test]
fn an_object_in_the_wrong_place_is_changed() {
    let mut case = case().recorded(remote("r1", "192.0.2.1", 1));
    case.observed.placement = Some(Placement {
        from: Some(3),
        to: Position::After("r0".into()),
        beside: "after Rule default/first".into(),
    });
    let plan = case.decide();
    assert_eq!(short(&plan), "update r1 position");
    assert_eq!(plan.lines(5)[1], r#"position: 3 -> "after Rule default/first""#);
}

#[test]
fn deletion_table() {
    use Deletion::{Delete, DeleteCreated, Retain};
    let recorded = |origin| Recorded {
        id: Some("r1".into()),
        origin,
        ..Recorded::default()
    };
    let found = remote("x", "192.0.2.1", 1);
    let rows = [
        (recorded(Some(Origin::Created)), None, DeleteCreated, "delete r1"),
        (recorded(Some(Origin::Adopted)), None, DeleteCreated, "forget"),
        (recorded(None), None, DeleteCreated, "forget"),
        (recorded(Some(Origin::Created)), None, Retain, "forget"),
        (recorded(Some(Origin::Adopted)), None, Delete, "delete r1"),
        (Recorded::default(), None, Delete, "forget"),
        (Recorded::default(), Some(&found), DeleteCreated, "delete x"),
        (Recorded::default(), Some(&found), Retain, "forget"),
    ];
    for (recorded, left_behind, deletion, expected) in rows {
        assert_eq!(
            short(&decide_deletion(&recorded, left_behind, deletion)),
            expected,
            "{recorded:?} {deletion:?}"
        );
    }
}

fn any_remote() -> impl Strategy<Value = Remote> {
    (
        0..4_u8,
        0..4_u8,
        prop_oneof![Just(1_u32), Just(300)],
        900..1_100_i64,
        any::<bool>(),
    )
        .prop_map(|(id, content, ttl, created, locked)| {
            let mut remote = remote(&format!("x{id}"), &format!("192.0.2.{content}"), ttl);
            remote.created = Some(at(created));
            remote.locked = locked.then(|| "managed elsewhere".to_owned());
            remote
        })
}

fn any_adoption() -> impl Strategy<Value = Adoption> {
    prop_oneof![
        Just(Adoption::Never),
        Just(Adoption::Adopt),
        Just(Adoption::AdoptOrCreate),
        Just(Adoption::IfMatching)
    ]
}

proptest! {
    #[test]
    fn consent_comes_before_every_write(
        candidates in prop::collection::vec(any_remote(), 0..6),
        adoption in any_adoption(),
        held in prop::collection::btree_set(0..4_u8, 0..4),
        exclusive in any::<bool>(),
        intent in prop::option::of(900..1_100_i64),
    ) {
        let mut case = case().seen(candidates.clone()).adoption(adoption);
        case.exclusive = exclusive;
        for id in &held {
            case = case.held(&format!("x{id}"));
        }
        if let Some(second) = intent {
            case = case.intent(second, "192.0.2.1");
        }
        let plan = case.decide();
        match &plan {
            Plan::Adopt { id, changes } => {
                prop_assert!(adoption != Adoption::Never);
                prop_assert!(adoption != Adoption::IfMatching || changes.is_empty());
                prop_assert!(case.holders.holder(id).is_none());
                prop_assert!(candidates.iter().any(|it| it.id == *id && it.locked.is_none()));
            }
            Plan::Recover { id, .. } => {
                prop_assert!(intent.is_some());
                prop_assert!(case.holders.holder(id).is_none());
                prop_assert!(candidates.iter().any(|it| it.id == *id && it.created >= intent.map(at) && it.locked.is_none()));
            }
            Plan::Create { .. } => {
                prop_assert!(matches!(adoption, Adoption::Never | Adoption::AdoptOrCreate));
                prop_assert!(candidates.iter().all(|it| it.key.member != "192.0.2.1"), "an equal one exists");
            }
            Plan::Blocked { reason, .. } => prop_assert!(*reason != Reason::SYNCED),
            other => prop_assert!(false, "{other:?} about a resource that has no object"),
        }
        // The same situation gives the same decision.
        prop_assert_eq!(plan, case.decide());
    }
}
