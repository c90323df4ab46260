//! Engines broken on purpose, to show that the simulation notices. Only with the feature `mutations`, which tests turn on;
//! without it nothing is ever broken and the compiler drops the branches.

use serde::{Deserialize, Serialize};

/// A way in which an engine can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mutation {
    /// A failed delete at Cloudflare is taken for done: the finalizer goes and the object stays.
    FinalizerDroppedOnError,
    /// Objects are created without a word about it beforehand.
    CreateWithoutIntent,
    /// The intent is taken off before the id is stored.
    IntentDroppedEarly,
    /// Whatever has the name of an intended object is taken for it.
    LookalikeTakenForOwn,
    /// A create without an answer is taken for one that failed.
    LostReplyTakenForFailure,
    /// Existing objects are taken over although nobody asked for it.
    AdoptionWithoutConsent,
    /// Objects are managed although another resource holds them.
    ClaimIgnored,
    /// What a list lacks is gone.
    AbsenceBelieved,
    /// A list that was taken once is good for ever.
    StaleSnapshotTrusted,
    /// Pauses are ignored.
    PauseIgnored,
    /// Observe mode is ignored.
    ObserveIgnored,
    /// A standby, or a leader that lost its lease, goes on writing.
    LeaseIgnored,
    /// Fields that others change back are corrected every time.
    ContestIgnored,
    /// What was adopted is deleted with its resource.
    AdoptedDeleted,
    /// The retain policy is ignored.
    RetainIgnored,
    /// Parents go although others depend on them.
    DependentsIgnored,
    /// Drift checks find nothing.
    DriftIgnored,
    /// A change of the spec is reported as carried out, and is not.
    ReadyWithoutEffect,
    /// A token is read once and never again.
    TokenKeptForEver,
    /// Status is written on every pass.
    StatusAlwaysWritten,
    /// Failures are tried again at once.
    BackoffForgotten,
    /// That a Secret or ConfigMap has changed which a spec reads is nobody's concern.
    InputsIgnored,
    /// What others write into a yielded Secret stays.
    YieldedEditsIgnored,
    /// An operation that ended is taken for done, however it ended, and the object for what it was to be.
    OperationEndBelieved,
    /// An operation is asked for again while one is under way.
    OperationForgotten,
    /// Where an object stands among others means nothing.
    OrderIgnored,
    /// What is being created for a resource that the API server removes meanwhile is nobody's concern.
    VanishedForgotten,
}

impl Mutation {
    /// All of them.
    pub const ALL: [Self; 27] = [
        Self::FinalizerDroppedOnError,
        Self::CreateWithoutIntent,
        Self::IntentDroppedEarly,
        Self::LookalikeTakenForOwn,
        Self::LostReplyTakenForFailure,
        Self::AdoptionWithoutConsent,
        Self::ClaimIgnored,
        Self::AbsenceBelieved,
        Self::StaleSnapshotTrusted,
        Self::PauseIgnored,
        Self::ObserveIgnored,
        Self::LeaseIgnored,
        Self::ContestIgnored,
        Self::AdoptedDeleted,
        Self::RetainIgnored,
        Self::DependentsIgnored,
        Self::DriftIgnored,
        Self::ReadyWithoutEffect,
        Self::TokenKeptForEver,
        Self::StatusAlwaysWritten,
        Self::BackoffForgotten,
        Self::InputsIgnored,
        Self::YieldedEditsIgnored,
        Self::OperationEndBelieved,
        Self::OperationForgotten,
        Self::OrderIgnored,
        Self::VanishedForgotten,
    ];
}

#[cfg(feature = "mutations")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Breaks every engine of this thread (none mends them) until told otherwise.
#[cfg(feature = "mutations")]
pub fn set(mutation: Option<Mutation>) {
    ACTIVE.with(|active| active.set(mutation));
}

/// Whether the engine is broken in that way.
#[cfg(feature = "mutations")]
pub(crate) fn is(mutation: Mutation) -> bool {
    ACTIVE.with(|active| active.get() == Some(mutation))
}

/// Whether the engine is broken in that way: never.
#[cfg(not(feature = "mutations"))]
pub(crate) const fn is(_mutation: Mutation) -> bool {
    false
}
