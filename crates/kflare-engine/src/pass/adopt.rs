//! Taking an object that exists under management.

use std::sync::Arc;

use super::{Changed, Next, Pass, Reserved, Work, candidate, outcome::Stage};
use crate::{
    decide::Observed,
    errors::Failure,
    object::{Object, Origin},
    occurrence::Occurrence,
    plan::{Change, field_names},
    report,
};

impl Pass<'_> {
    /// Brings an existing object under management: claimed first, changed then, recorded last. A crash in between finds the
    /// same plan again.
    pub(super) async fn adopt(
        &self,
        object: &Arc<Object>,
        work: &Work,
        id: &str,
        changes: &[Change],
        observed: &Observed,
    ) -> Result<Next, Failure> {
        self.context.index().reserve(&work.prepared.collection, id, &object.key);
        let _reserved = Reserved {
            context: self.context,
            key: object.key.clone(),
        };
        let object = self.claim(object, id, Some(Origin::Adopted)).await?;
        let (done, what) = if changes.is_empty() {
            (Changed::Stored(candidate(observed, id)?), "unchanged".to_owned())
        } else {
            (self.change(&object, work, id, changes).await?, field_names(changes))
        };
        let note = format!("adopted {id}; changed: {what}");
        report::event(self.context, &object, Occurrence::ADOPTED, note);
        let remote = match done {
            Changed::Stored(remote) => remote,
            Changed::UnderWay(under_way) => {
                let remote = candidate(observed, id)?;
                return Ok(self.begun(&object, work, Some(&remote), under_way, Vec::new()).await);
            }
        };
        let mut object = object;
        if self.awaits_yield(&object, &remote) {
            // Recorded before its Secret is made, which may fail on its own.
            let taken = Some(Origin::Adopted);
            let next = self
                .report_synced(&object, work, &remote, taken, Stage::Created)
                .await?;
            let Some(stored) = self.stored(&object, &remote.id) else {
                return Ok(next);
            };
            object = stored;
        }
        self.report_synced(&object, work, &remote, Some(Origin::Adopted), Stage::Final)
            .await
    }
}
