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

use super::facts::{PayoutFacts, Wanted};
use super::fees::{FeeFacts, Price};
use super::fraud::Assessment;
use super::pack::{Pack, PackKind};

/// For whom a pack decides: everybody, or one merchant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Everybody who has no pack of its own.
    Platform,
    /// One merchant.
    Merchant(MerchantId),
}

/// What a pack does in its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// It decides.
    Active,
    /// It is asked too, and its answers are only compared.
    Shadow,
}

/// The pack that decides for somebody, and the one that is tried beside it.
#[derive(Debug)]
pub struct Seat {
    /// Who decides; nobody means that everything is allowed.
    pub pack: Option<Arc<Pack>>,
    /// Why the pack that should decide is not there.
    pub missing: Option<String>,
    /// Who is tried.
    pub shadow: Option<Arc<Pack>>,
    pub(super) wanted: Wanted,
}

/// Who has a seat.
#[derive(Clone, Debug)]
pub enum Occupant {
    /// This pack.
    Pack(Arc<Pack>),
    /// A pack that this host cannot open, and why: the setting for failures decides.
    Missing(String),
}

/// The packs by kind, scope and role.
pub type Seating = HashMap<(PackKind, Scope, Role), Occupant>;

/// All seats at one moment.
#[derive(Debug)]
pub struct Seats {
    /// How many changes there have been.
    pub generation: i64,
    on_failure: OnFailure,
    seats: HashMap<(PackKind, Scope), Arc<Seat>>,
}

/// The seats as they are now.
#[derive(Debug)]
pub struct Packs(ArcSwap<Seats>);

impl Packs {
    /// Begins with these.
    #[must_use]
    pub fn new(seats: Seats) -> Self {
        Self(ArcSwap::from_pointee(seats))
    }

    /// The seats as they are now. Whoever decides takes them once.
    #[must_use]
    pub fn now(&self) -> Arc<Seats> {
        self.0.load_full()
    }

    /// Replaces all seats at once, unless somebody else has put later ones there. A pack that
    /// takes a seat begins without failures, whatever happened when it had one before.
    pub fn replace(&self, seats: Seats) {
        let seats = Arc::new(seats);
        let before = self.now().packs();
        for pack in seats.packs() {
            if !before.iter().any(|known| known.digest == pack.digest) {
                pack.forget_failures();
            }
        }
        self.0.rcu(|now| Arc::clone(if now.generation < seats.generation { &seats } else { now }));
    }
}

impl Seats {
    /// Works out who decides for whom. A merchant with a pack of its own is not decided by the
    /// platform's, nor is the platform's candidate tried on it.
    #[must_use]
    pub fn of(generation: i64, seating: &Seating, on_failure: OnFailure) -> Self {
        let mut seats = HashMap::new();
        for (kind, scope, _) in seating.keys() {
            let at = |scope: &Scope, role| seating.get(&(*kind, scope.clone(), role)).cloned();
            let own = at(scope, Role::Active);
            let fallback = own.is_none().then(|| at(&Scope::Platform, Role::Active)).flatten();
            let tried = at(scope, Role::Shadow);
            let also = own.is_none().then(|| at(&Scope::Platform, Role::Shadow)).flatten();
            let seat = Seat::of(own.or(fallback), tried.or(also));
            seats.insert((*kind, scope.clone()), Arc::new(seat));
        }
        Self { generation, on_failure, seats }
    }

    /// Who decides for this merchant.
    #[must_use]
    pub fn seat(&self, kind: PackKind, merchant: &MerchantId) -> Option<&Arc<Seat>> {
        let own = self.seats.get(&(kind, Scope::Merchant(merchant.clone())));
        own.or_else(|| self.seats.get(&(kind, Scope::Platform)))
    }

    /// Whether a pack of this kind decides for the platform, or would if this host could open
    /// it.
    #[must_use]
    pub fn decides(&self, kind: PackKind) -> bool {
        let seat = self.seats.get(&(kind, Scope::Platform));
        seat.is_some_and(|seat| seat.pack.is_some() || seat.missing.is_some())
    }

    /// Whether a decision about this merchant's payouts wants to know a fact that is costly to
    /// find out.
    #[must_use]
    pub fn wants(&self, merchant: &MerchantId, fact: &str) -> bool {
        self.seat(PackKind::Fraud, merchant).is_some_and(|seat| seat.wanted.has(fact))
    }

    /// Prepares the decision about a payout; nothing where no pack decides or is tried.
    #[must_use]
    pub fn assessment(&self, payout: &PayoutFacts<'_>) -> Option<Assessment> {
        let seat = self.seat(PackKind::Fraud, payout.merchant)?;
        Some(Assessment::new(Arc::clone(seat), payout, self.on_failure))
    }

    /// The price of one payout.
    ///
    /// # Errors
    /// `rail_not_configured` where no pack is active or none of its rules matches, `api_error`
    /// where the pack fails or answers nonsense.
    pub fn price(&self, facts: &FeeFacts<'_>) -> Result<Price, Problem> {
        let seat = self.seat(PackKind::Fees, facts.merchant);
        if let Some(why) = seat.and_then(|seat| seat.missing.clone()) {
            return Err(Problem::internal(why));
        }
        let pack = seat.and_then(|seat| seat.pack.as_ref()).ok_or_else(|| {
            Problem::new(ErrorCode::RailNotConfigured).caused_by("no fee pack is active")
        })?;
        pack.price(facts)
    }

    /// Every pack that decides or is tried, once.
    #[must_use]
    pub fn packs(&self) -> Vec<Arc<Pack>> {
        let mut packs: Vec<Arc<Pack>> = Vec::new();
        for seat in self.seats.values() {
            for pack in [&seat.pack, &seat.shadow].into_iter().flatten() {
                if !packs.iter().any(|known| known.digest == pack.digest) {
                    packs.push(Arc::clone(pack));
                }
            }
        }
        packs
    }
}

impl Seat {
    fn of(active: Option<Occupant>, tried: Option<Occupant>) -> Self {
        let (pack, missing) = match active {
            Some(Occupant::Pack(pack)) => (Some(pack), None),
            Some(Occupant::Missing(why)) => (None, Some(why)),
            None => (None, None),
        };
        let shadow = match tried {
            Some(Occupant::Pack(pack)) => Some(pack),
            Some(Occupant::Missing(_)) | None => None,
        };
        let names = [&pack, &shadow].into_iter().flatten().flat_map(|pack| &pack.about.facts);
        let wanted = Wanted::of(names);
        Self { pack, missing, shadow, wanted }
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

    /// Reads it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "platform" => Some(Self::Platform),
            other => MerchantId::parse(other).map(Self::Merchant),
        }
    }
}

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Shadow => "shadow",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Shadow].into_iter().find(|role| role.as_str() == text)
    }
}
