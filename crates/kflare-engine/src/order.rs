//! Collections whose order means something: which of our objects stand where they should not, and where they belong. Pure.
//!
//! Objects of others are never moved, so only the order of ours relative to each other counts. As few as possible move: those
//! outside a longest run that is in order already. Moving one of them beside its neighbour in that run makes the run longer by
//! one, so that it ends.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;

use crate::{
    collections::Collections,
    index::{CollectionKey, Index},
    kind::Position,
    kinds::Kinds,
    mutation::{self, Mutation},
    object::{Object, ObjectKey},
    policy::stands_still,
};

/// One of our objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The resource.
    pub key: ObjectKey,
    /// Its object; none when it is still to be made.
    pub id: Option<String>,
    /// Its index in the collection; none when the collection was not seen to hold it.
    pub at: Option<usize>,
    /// It is not to be moved (paused, observed): others move round it where that is possible.
    pub fixed: bool,
}

/// Where an object belongs, other than where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// Where it is now, counted from one.
    pub from: Option<usize>,
    /// Where it belongs.
    #[serde(skip)]
    pub to: Position,
    /// The same in words.
    pub beside: String,
}

/// Our objects of one collection, in the order that they should have.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    members: Vec<Member>,
    /// For each, whether it stays where it is.
    stays: Vec<bool>,
}

impl Arrangement {
    /// An arrangement of `members`, which come in the order that they should have.
    pub fn new(members: Vec<Member>) -> Self {
        let stays = if mutation::is(Mutation::OrderIgnored) {
            vec![true; members.len()]
        } else {
            in_order(&members)
        };
        Self { members, stays }
    }

    /// The arrangement of a collection as last listed, with `joining` in it although nothing is recorded of it.
    pub fn of(
        index: &Index,
        kinds: &Kinds,
        collections: &Collections,
        collection: &CollectionKey,
        joining: &Object,
    ) -> Self {
        let places = collections.positions(collection);
        let mut members = index.members(collection);
        // Just made, and not recorded yet.
        let made: BTreeMap<&ObjectKey, &str> = index
            .reserved(collection)
            .filter(|(id, _)| places.contains_key(*id))
            .map(|(id, key)| (key, id))
            .collect();
        members.extend(made.keys().filter_map(|key| index.get(key)));
        members.sort_by(|a, b| a.key.cmp(&b.key));
        members.dedup_by(|a, b| a.key == b.key);
        let mut members: Vec<_> = members
            .iter()
            .filter(|object| object.key != joining.key && !object.deleting)
            .map(AsRef::as_ref)
            .chain([joining])
            .filter_map(|object| {
                let kind = kinds.get(&object.key.kind)?;
                // What was just made is not recorded yet; what is recorded may be gone.
                let made = made.get(&object.key).map(|id| (*id).to_owned());
                let id = made.or_else(|| object.recorded(kind.descriptor().id_field()).id);
                let at = id.as_ref().and_then(|id| places.get(id.as_str()).copied());
                let member = Member {
                    key: object.key.clone(),
                    id,
                    at,
                    fixed: stands_still(object),
                };
                Some((kind.rank(&object.spec.value()), member))
            })
            .collect();
        members.sort_by(|(a, x), (b, y)| (a, &x.key.namespace, &x.key.name).cmp(&(b, &y.key.namespace, &y.key.name)));
        Self::new(members.into_iter().map(|(_, member)| member).collect())
    }

    /// Where `key` belongs, if it has to move there; for an object that is still to be made, where to make it. None also when
    /// there is nothing to put it beside.
    pub fn placement(&self, key: &ObjectKey) -> Option<Placement> {
        let me = self.members.iter().position(|member| member.key == *key)?;
        if self.stays.get(me).copied().unwrap_or(false) {
            return None;
        }
        let settled = |at: &usize| self.stays.get(*at).copied().unwrap_or(false);
        let before = (0..me).rev().find(settled).and_then(|at| self.members.get(at));
        let after = (me + 1..self.members.len())
            .find(settled)
            .and_then(|at| self.members.get(at));
        let from = self.members.get(me)?.at.map(|at| at + 1);
        let placed = |word: &str, other: &Member, to: fn(String) -> Position| {
            Some(Placement {
                from,
                to: to(other.id.clone()?),
                beside: format!("{word} {}", other.key),
            })
        };
        match (before, after) {
            (Some(before), _) => placed("after", before, Position::After),
            (None, Some(after)) => placed("before", after, Position::Before),
            (None, None) => None,
        }
    }

    /// The resources whose objects have to move.
    pub fn misplaced(&self) -> impl Iterator<Item = &ObjectKey> {
        let all = self.members.iter().zip(&self.stays);
        all.filter(|(member, stays)| member.at.is_some() && !member.fixed && !**stays)
            .map(|(member, _)| &member.key)
    }
}

/// For each member, whether it is part of the heaviest run that is in order already. Those that are not to be moved weigh more
/// than all others together; of equal runs the one with the earliest members wins.
fn in_order(members: &[Member]) -> Vec<bool> {
    let seen: Vec<(usize, usize, usize)> = members
        .iter()
        .enumerate()
        .filter_map(|(nth, member)| Some((nth, member.at?, if member.fixed { members.len() + 1 } else { 1 })))
        .collect();
    let mut stays = vec![false; members.len()];
    if seen.is_sorted_by(|a, b| a.1 < b.1) {
        for (nth, ..) in &seen {
            stays[*nth] = true;
        }
        return stays;
    }
    // The heaviest run that begins with each, from the last to the first: its weight, and which comes next.
    let mut best: Vec<(usize, Option<usize>)> = vec![(0, None); seen.len()];
    for first in (0..seen.len()).rev() {
        let (_, at, weight) = seen[first];
        let next = (first + 1..seen.len())
            .filter(|next| seen[*next].1 > at)
            .max_by_key(|next| (best[*next].0, Reverse(*next)));
        best[first] = (weight + next.map_or(0, |next| best[next].0), next);
    }
    let mut step = (0..seen.len()).max_by_key(|first| (best[*first].0, Reverse(*first)));
    while let Some(at) = step {
        stays[seen[at].0] = true;
        step = best[at].1;
    }
    stays
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn member(name: &str, at: Option<usize>) -> Member {
        Member {
            key: ObjectKey::new("Rule", Some("ns"), name),
            id: at.map(|_| format!("id-{name}")),
            at,
            fixed: false,
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::new("Rule", Some("ns"), name)
    }

    fn names(arrangement: &Arrangement) -> Vec<&str> {
        arrangement.misplaced().map(|key| &*key.name).collect()
    }

    #[test]
    fn what_is_in_order_stays_whatever_stands_between() {
        let all = Arrangement::new(vec![member("a", Some(0)), member("b", Some(4)), member("c", Some(9))]);
        assert_eq!(names(&all), Vec::<&str>::new());
        assert_eq!(all.placement(&key("b")), None);
    }

    #[test]
    fn one_that_moved_goes_back_beside_its_neighbour() {
        let all = Arrangement::new(vec![member("a", Some(5)), member("b", Some(1)), member("c", Some(2))]);
        assert_eq!(names(&all), ["a"]);
        let placement = all.placement(&key("a")).unwrap();
        assert_eq!(placement.to, Position::Before("id-b".into()));
        assert_eq!(
            (placement.from, placement.beside.as_str()),
            (Some(6), "before Rule ns/b")
        );
    }

    #[test]
    fn a_new_one_is_made_after_those_before_it() {
        let all = Arrangement::new(vec![member("a", Some(3)), member("new", None), member("c", Some(7))]);
        assert_eq!(all.placement(&key("new")).unwrap().to, Position::After("id-a".into()));
        assert_eq!(names(&all), Vec::<&str>::new());
        assert_eq!(Arrangement::new(vec![member("new", None)]).placement(&key("new")), None);
    }

    #[test]
    fn one_that_may_not_move_is_moved_round() {
        let mut paused = member("a", Some(5));
        paused.fixed = true;
        let all = Arrangement::new(vec![paused, member("b", Some(1)), member("c", Some(2))]);
        assert_eq!(names(&all), ["b", "c"]);
        assert_eq!(all.placement(&key("b")).unwrap().to, Position::After("id-a".into()));
    }

    proptest! {
        /// Moving one misplaced object after the other ends, in order, and moves nobody else.
        #[test]
        fn moves_end_in_order(order in Just((0..9_usize).collect::<Vec<_>>()).prop_shuffle(), foreign in proptest::collection::vec(0..9_usize, 0..4)) {
            // The document: ours by number, others as None, which keep their order among themselves.
            let mut document: Vec<Option<usize>> = order.into_iter().map(Some).collect();
            for at in foreign {
                document.insert(at, None);
            }
            let mut moves = 0;
            loop {
                let members = (0..9).map(|n| {
                    member(&n.to_string(), document.iter().position(|it| *it == Some(n)))
                });
                let all = Arrangement::new(members.collect());
                let Some(moving) = all.misplaced().next().cloned() else { break };
                let n: usize = moving.name.parse().unwrap();
                document.retain(|it| *it != Some(n));
                let (id, after) = match all.placement(&moving).unwrap().to {
                    Position::After(id) => (id, 1),
                    Position::Before(id) => (id, 0),
                };
                let other: usize = id.strip_prefix("id-").unwrap().parse().unwrap();
                let at = document.iter().position(|it| *it == Some(other)).unwrap();
                document.insert(at + after, Some(n));
                moves += 1;
                prop_assert!(moves < 9, "one move each at most");
            }
            let ours: Vec<usize> = document.iter().flatten().copied().collect();
            prop_assert_eq!(ours, (0..9).collect::<Vec<_>>());
        }
    }
}
