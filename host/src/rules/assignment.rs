//! The packs that decide now: one set, replaced as a whole.
//!
//! A request takes the set once and keeps it to its end, so no decision is made by two
//! versions, whatever is activated meanwhile.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::OnFailure;
use crate::error::{ErrorCode, Problem};
use crate::id::MerchantId;

use super::facts::{PayoutFacts, WantedFacts};
use super::fees::{FeeFacts, Price};
use super::fraud::Assessment;
use super::pack::{Pack, PackKind};

/// For whom a pack decides: everybody, or one merchant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Everybody who has no pack of its own.
    Platform,
    /// One merchant, in place of the platform's pack.
    Merchant(MerchantId),
}

/// What a pack does where it is assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// It decides.
    Active,
    /// It is asked too, and its answers are only compared.
    Shadow,
}

/// The pack that decides for somebody, and the one that is tried beside it.
#[derive(Debug)]
pub struct Assignment {
    /// Who decides; nobody means that everything is allowed.
    pub pack: Option<Arc<Pack>>,
    /// Why the pack that should decide is not there.
    pub missing: Option<Missing>,
    /// Who is tried.
    pub shadow: Option<Arc<Pack>>,
    pub(super) wanted: WantedFacts,
}

/// What is assigned to one kind, scope and role.
#[derive(Clone, Debug)]
pub enum AssignedPack {
    /// A pack that this host has opened.
    Pack(Arc<Pack>),
    /// None that could decide, though one should.
    Missing(Missing),
}

/// Why the pack that should decide does not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// This host cannot open it, and why: the setting for failures decides.
    #[error("{0}")]
    Lost(String),
    /// It kept failing: every payout is held until somebody assigns a pack.
    #[error("the rule pack that decided was taken out because it kept failing")]
    TakenOut,
}

/// What is assigned, by kind, scope and role.
pub type AssignedPacks = HashMap<(PackKind, Scope, Role), AssignedPack>;

/// All assignments at one moment.
#[derive(Debug)]
pub struct Assignments {
    /// How many changes there have been.
    pub generation: i64,
    /// For how many, the platform being one, payouts are held because their pack was taken out.
    pub held: usize,
    on_failure: OnFailure,
    by_scope: HashMap<(PackKind, Scope), Arc<Assignment>>,
}

/// The assignments as they are now.
#[derive(Debug)]
pub struct Packs(ArcSwap<Assignments>);

impl Packs {
    /// Begins with these.
    #[must_use]
    pub fn new(assignments: Assignments) -> Self {
        Self(ArcSwap::from_pointee(assignments))
    }

    /// The assignments as they are now. Whoever decides takes them once.
    #[must_use]
    pub fn now(&self) -> Arc<Assignments> {
        self.0.load_full()
    }

    /// Replaces all assignments at once, unless somebody else has put later ones there. Failures
    /// are counted anew from then on: a pack may decide for others now.
    pub fn replace(&self, assignments: Assignments) {
        let assignments = Arc::new(assignments);
        let is_later = |now: &Assignments| now.generation < assignments.generation;
        if is_later(&self.now()) {
            assignments.packs().iter().for_each(|pack| pack.forget_failures());
        }
        self.0.rcu(|now| Arc::clone(if is_later(now) { &assignments } else { now }));
    }
}

impl Assignments {
    /// Works out who decides for whom. A merchant with a pack of its own is not decided by the
    /// platform's, nor is the platform's candidate tried on it.
    #[must_use]
    pub fn of(generation: i64, assigned: &AssignedPacks, on_failure: OnFailure) -> Self {
        let mut by_scope = HashMap::new();
        for (kind, scope, _) in assigned.keys() {
            let at = |scope: &Scope, role| assigned.get(&(*kind, scope.clone(), role)).cloned();
            let own = at(scope, Role::Active);
            let fallback = own.is_none().then(|| at(&Scope::Platform, Role::Active)).flatten();
            let tried = at(scope, Role::Shadow);
            let also = own.is_none().then(|| at(&Scope::Platform, Role::Shadow)).flatten();
            let assignment = Assignment::of(own.or(fallback), tried.or(also));
            by_scope.insert((*kind, scope.clone()), Arc::new(assignment));
        }
        let is_held =
            |pack: &&AssignedPack| matches!(pack, AssignedPack::Missing(Missing::TakenOut));
        let held = assigned.values().filter(is_held).count();
        Self { generation, held, on_failure, by_scope }
    }

    /// Who decides for this merchant.
    #[must_use]
    pub fn for_merchant(&self, kind: PackKind, merchant: &MerchantId) -> Option<&Arc<Assignment>> {
        let own = self.by_scope.get(&(kind, Scope::Merchant(merchant.clone())));
        own.or_else(|| self.by_scope.get(&(kind, Scope::Platform)))
    }

    /// Whether a pack of this kind decides for the platform, or would if this host could open
    /// it.
    #[must_use]
    pub fn decides(&self, kind: PackKind) -> bool {
        let assignment = self.by_scope.get(&(kind, Scope::Platform));
        assignment
            .is_some_and(|assignment| assignment.pack.is_some() || assignment.missing.is_some())
    }

    /// Whether a decision about this merchant's payouts wants to know a fact that is costly to
    /// find out.
    #[must_use]
    pub fn wants(&self, merchant: &MerchantId, fact: &str) -> bool {
        self.for_merchant(PackKind::Fraud, merchant)
            .is_some_and(|assignment| assignment.wanted.has(fact))
    }

    /// Prepares the decision about a payout; nothing where no pack decides or is tried.
    #[must_use]
    pub fn assessment(&self, payout: &PayoutFacts<'_>) -> Option<Assessment> {
        let assignment = self.for_merchant(PackKind::Fraud, payout.merchant)?;
        Some(Assessment::new(Arc::clone(assignment), payout, self.on_failure))
    }

    /// The price of one payout.
    ///
    /// # Errors
    /// `rail_not_configured` where no pack is active or none of its rules matches, `api_error`
    /// where the pack fails or answers nonsense.
    pub fn price(&self, facts: &FeeFacts<'_>) -> Result<Price, Problem> {
        let assignment = self.for_merchant(PackKind::Fees, facts.merchant);
        if let Some(missing) = assignment.and_then(|assignment| assignment.missing.clone()) {
            return Err(Problem::internal(missing));
        }
        let pack = assignment.and_then(|assignment| assignment.pack.as_ref()).ok_or_else(|| {
            Problem::new(ErrorCode::RailNotConfigured).caused_by("no fee pack is active")
        })?;
        pack.price(facts)
    }

    /// Every pack that decides or is tried, once.
    #[must_use]
    pub fn packs(&self) -> Vec<Arc<Pack>> {
        let mut packs: Vec<Arc<Pack>> = Vec::new();
        for assignment in self.by_scope.values() {
            for pack in [&assignment.pack, &assignment.shadow].into_iter().flatten() {
                if !packs.iter().any(|known| known.digest == pack.digest) {
                    packs.push(Arc::clone(pack));
                }
            }
        }
        packs
    }
}

impl Assignment {
    fn of(active: Option<AssignedPack>, tried: Option<AssignedPack>) -> Self {
        let (pack, missing) = match active {
            Some(AssignedPack::Pack(pack)) => (Some(pack), None),
            Some(AssignedPack::Missing(missing)) => (None, Some(missing)),
            None => (None, None),
        };
        let shadow = match tried {
            Some(AssignedPack::Pack(pack)) => Some(pack),
            Some(AssignedPack::Missing(_)) | None => None,
        };
        let names = [&pack, &shadow].into_iter().flatten().flat_map(|pack| &pack.about.facts);
        let wanted = WantedFacts::of(names);
        Self { pack, missing, shadow, wanted }
    }
}

impl Missing {
    /// What becomes of a payout that it should have decided about.
    pub(super) const fn decided(&self, on_failure: OnFailure) -> OnFailure {
        match self {
            Self::Lost(_) => on_failure,
            Self::TakenOut => OnFailure::Closed,
        }
    }
}

impl Scope {
    /// How it is written: `platform`, or the merchant's id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Platform => "platform",
            Self::Merchant(id) => id.as_str(),
        }
    }

    /// Reads what [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "platform" => Some(Self::Platform),
            other => MerchantId::parse(other).map(Self::Merchant),
        }
    }
}

impl Role {
    /// The word on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Shadow => "shadow",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Shadow].into_iter().find(|role| role.as_str() == text)
    }
}
