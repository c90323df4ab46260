//! Operations: changes that Cloudflare accepts at once and carries out later. The id of an operation is recorded in status, so
//! that a crash does not lose it, and looked at in later passes; no worker waits for it.
//!
//! A change that takes several operations is sent one at a time. What is left to send is kept in memory only: after a restart
//! the difference to what the spec asks for is found anew.

use std::{collections::BTreeMap, time::Duration};

use async_trait::async_trait;
use kflare_cloudflare::{Client, Error};
use serde_json::Value;

use crate::{
    kind::{Desired, Site, Stored},
    object::Object,
    plan::Change,
};

/// Field of status that holds the operation under way.
pub(crate) const FIELD: &str = "operation";

/// The pauses between looks: they double from the first to the longest.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// An operation that has not ended after that long is given up: the object is looked at as it is.
pub(crate) const OVERDUE: Duration = Duration::from_hours(1);

/// What came of a change that may take an operation.
#[derive(Clone, Debug)]
pub enum Started {
    /// It is carried out. As for every write, the object holds what lists leave out.
    Stored(Box<Stored>),
    /// It was accepted.
    UnderWay(UnderWay),
}

/// An operation that was accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct UnderWay {
    /// Its id.
    pub operation: String,
    /// What is to be sent once it has ended well; handed to [`OperationWriter::resume`] as it is.
    pub rest: Option<Value>,
}

/// How far an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It waits for its turn, or is under way.
    Running,
    /// It is carried out.
    Done,
    /// It ended with an error, in Cloudflare's words.
    Failed(String),
}

/// Changes objects by operations: takes the place of [`crate::Kind::update`].
#[async_trait]
pub trait OperationWriter: Send + Sync {
    /// Changes fields of an object, or asks for it.
    async fn start(
        &self,
        client: &Client,
        site: Site<'_>,
        id: &str,
        desired: &Desired,
        changes: &[Change],
    ) -> Result<Started, Error>;

    /// Goes on with what [`UnderWay::rest`] left. An error ends the change; the object is then looked at anew.
    async fn resume(&self, client: &Client, site: Site<'_>, id: &str, rest: &Value) -> Result<UnderWay, Error>;

    /// How far an operation is. One that Cloudflare no longer knows has ended: an error of the class
    /// [`Missing`](crate::errors::Class::Missing) says so.
    async fn progress(&self, client: &Client, scope: &str, operation: &str) -> Result<Progress, Error>;
}

/// An operation of a resource, as far as memory holds it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Followed {
    /// Its id.
    pub operation: String,
    /// What is left to send.
    pub rest: Option<Value>,
    /// The generation that asked for it.
    pub generation: i64,
    /// The fields that it corrects, if somebody else had changed them.
    pub corrects: Vec<Change>,
    looks: u32,
}

impl Followed {
    /// An operation that was just accepted for `object`.
    pub fn new(object: &Object, under_way: UnderWay, corrects: Vec<Change>) -> Self {
        Self {
            operation: under_way.operation,
            rest: under_way.rest,
            generation: object.generation,
            corrects,
            looks: 0,
        }
    }
}

/// The operations of all resources.
#[derive(Default)]
pub(crate) struct Operations {
    /// By UID of the resource.
    followed: BTreeMap<String, Followed>,
    /// Operations that have ended and may still be in status, by UID.
    over: BTreeMap<String, String>,
}

impl Operations {
    /// The operation to look at. What memory knows is newer than what is stored.
    pub fn current(&self, object: &Object) -> Option<String> {
        if let Some(followed) = self.followed.get(&object.uid) {
            return Some(followed.operation.clone());
        }
        let stored: String = object.status.get(&[FIELD, "id"])?;
        (!self.is_over(&object.uid, &stored)).then_some(stored)
    }

    /// An operation was accepted.
    pub fn begun(&mut self, uid: &str, followed: Followed) {
        self.followed.insert(uid.to_owned(), followed);
    }

    /// Counts a look at an operation that has not ended. Gives the pause until the next.
    pub fn looked(&mut self, uid: &str, operation: &str) -> Duration {
        let followed = self.followed.entry(uid.to_owned()).or_insert_with(|| Followed {
            operation: operation.to_owned(),
            ..Followed::default()
        });
        let pause = FIRST_LOOK.saturating_mul(1 << followed.looks.min(10));
        followed.looks += 1;
        pause.min(LONGEST_PAUSE)
    }

    /// An operation has ended. Gives what memory holds of it.
    pub fn ended(&mut self, uid: &str, operation: &str) -> Followed {
        self.over.insert(uid.to_owned(), operation.to_owned());
        let followed = self.followed.remove(uid);
        followed.filter(|it| it.operation == operation).unwrap_or_default()
    }

    /// Whether an operation is known to have ended.
    pub fn is_over(&self, uid: &str, operation: &str) -> bool {
        self.over.get(uid).is_some_and(|over| over == operation)
    }

    /// The status no longer names an operation that has ended.
    pub fn cleared(&mut self, uid: &str) {
        self.over.remove(uid);
    }

    /// The resource is gone.
    pub fn forget(&mut self, uid: &str) {
        self.followed.remove(uid);
        self.over.remove(uid);
    }

    /// How many are kept.
    pub fn size(&self) -> usize {
        self.followed.len() + self.over.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compact::{Json, TextMap},
        object::ObjectKey,
    };
    use serde_json::json;

    fn object(status: Value) -> Object {
        Object {
            key: ObjectKey::new("List", None, "a"),
            uid: "u".into(),
            resource_version: "1".into(),
            generation: 3,
            created: None,
            deleting: false,
            finalizers: vec![],
            labels: TextMap::default(),
            annotations: TextMap::default(),
            spec: Json::default(),
            status: status.into(),
        }
    }

    fn under_way(operation: &str, rest: Option<Value>) -> UnderWay {
        UnderWay {
            operation: operation.to_owned(),
            rest,
        }
    }

    #[test]
    fn after_a_restart_status_tells_of_the_operation_until_it_has_ended() {
        let mut operations = Operations::default();
        let stored = object(json!({"operation": {"id": "o1", "since": "2026-01-01T00:00:00Z"}}));
        assert_eq!(operations.current(&stored).as_deref(), Some("o1"));
        assert_eq!(operations.ended("u", "o1"), Followed::default());
        assert_eq!(operations.current(&stored), None);
        operations.cleared("u");
        assert_eq!(operations.size(), 0);
    }

    #[test]
    fn what_was_just_accepted_counts_before_it_is_stored() {
        let mut operations = Operations::default();
        let stored = object(json!({"operation": {"id": "o1"}}));
        operations.ended("u", "o1");
        let followed = Followed::new(&stored, under_way("o2", Some(json!([1]))), Vec::new());
        operations.begun("u", followed.clone());
        assert_eq!(operations.current(&stored).as_deref(), Some("o2"));
        assert_eq!(operations.ended("u", "o2"), followed);
        assert_eq!((followed.generation, operations.current(&object(json!({})))), (3, None));
    }

    #[test]
    fn looks_become_rarer_up_to_a_bound() {
        let mut operations = Operations::default();
        let seconds: Vec<u64> = (0..8).map(|_| operations.looked("u", "o1").as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30, 30]);
        operations.begun(
            "u",
            Followed::new(&object(json!({})), under_way("o2", None), Vec::new()),
        );
        assert_eq!(operations.looked("u", "o2"), FIRST_LOOK, "each has its own");
    }
}
