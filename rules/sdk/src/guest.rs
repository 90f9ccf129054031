//! How the exports of a component call a pack. Only the macros of this crate name these.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::bindings::fees::exports::railhead::rules::fees;
use crate::bindings::fraud::exports::railhead::rules::fraud;
use crate::bindings::pack::exports::railhead::rules::pack;
use crate::{Fact, Facts, FeePack, FraudPack, Line, Problem, Verdict};

/// Where a pack stands once it has read its rules.
pub trait Kept: Sized + 'static {
    /// Calls with the place.
    fn with<R>(call: impl FnOnce(&RefCell<Option<Self>>) -> R) -> R;
}

/// The exports of a fee pack.
pub struct Fees<P>(PhantomData<P>);

/// The exports of a fraud pack.
pub struct Fraud<P>(PhantomData<P>);

/// Gives a pack its place in the component, and the component its `pack` interface.
#[doc(hidden)]
#[macro_export]
macro_rules! export_pack {
    ($pack:ty, $exports:ident) => {
        ::std::thread_local! {
            static PACK: ::std::cell::RefCell<::std::option::Option<$pack>> =
                const { ::std::cell::RefCell::new(::std::option::Option::None) };
        }

        impl $crate::guest::Kept for $pack {
            fn with<R>(
                call: impl FnOnce(&::std::cell::RefCell<::std::option::Option<Self>>) -> R,
            ) -> R {
                PACK.with(call)
            }
        }

        type Exports = $crate::guest::$exports<$pack>;
        $crate::bindings::pack::export_pack!(Exports with_types_in $crate::bindings::pack);
    };
}

fn keep<P: Kept>(opened: Result<P, Vec<Problem>>) -> Result<(), Vec<pack::Problem>> {
    let said = |Problem { at, message }| pack::Problem { at, message };
    let pack = opened.map_err(|problems| problems.into_iter().map(said).collect::<Vec<_>>())?;
    P::with(|place| place.replace(Some(pack)));
    Ok(())
}

impl<P: FeePack + Kept> pack::Guest for Fees<P> {
    fn open(rules: String) -> Result<(), Vec<pack::Problem>> {
        keep(P::open(&rules))
    }
}

impl<P: FeePack + Kept> fees::Guest for Fees<P> {
    fn price(payouts: Vec<Vec<Fact>>) -> Vec<Result<Vec<Line>, String>> {
        P::with(|place| match &*place.borrow() {
            Some(pack) => payouts.iter().map(|facts| pack.price(&Facts(facts))).collect(),
            None => payouts.iter().map(|_| Err("the pack was not opened".to_owned())).collect(),
        })
    }
}

impl<P: FraudPack + Kept> pack::Guest for Fraud<P> {
    fn open(rules: String) -> Result<(), Vec<pack::Problem>> {
        keep(P::open(&rules))
    }
}

impl<P: FraudPack + Kept> fraud::Guest for Fraud<P> {
    fn assess(payouts: Vec<Vec<Fact>>) -> Vec<Verdict> {
        P::with(|place| match &*place.borrow() {
            Some(pack) => payouts.iter().map(|facts| pack.assess(&Facts(facts))).collect(),
            // No verdict at all is an answer that the host refuses.
            None => Vec::new(),
        })
    }
}
