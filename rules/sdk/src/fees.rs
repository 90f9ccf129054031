//! What a payout costs.

pub use crate::bindings::fees::exports::railhead::rules::fees::{Kind, Line};
use crate::{Facts, Problem};

/// A pack that prices payouts.
pub trait FeePack: Sized {
    /// Reads the text of `rules.toml`.
    ///
    /// # Errors
    /// Everything that is wrong in it, each with its place.
    fn open(rules: &str) -> Result<Self, Vec<Problem>>;

    /// The lines of the price of one payout.
    ///
    /// # Errors
    /// Why these rules have no price for it, for the operator's log.
    fn price(&self, facts: &Facts<'_>) -> Result<Vec<Line>, String>;
}

/// Makes this crate a component that prices payouts with the given [`FeePack`].
#[macro_export]
macro_rules! export_fee_pack {
    ($pack:ty) => {
        // On every target, so that a type that is no such pack is noticed on all of them.
        const _: fn(&str) -> ::std::result::Result<$pack, ::std::vec::Vec<$crate::Problem>> =
            <$pack as $crate::FeePack>::open;

        #[cfg(target_family = "wasm")]
        const _: () = {
            $crate::export_pack!($pack, Fees);
    $crate::bindings::fees::export_fees!(Exports with_types_in $crate::bindings::fees);
        };
    };
}
