//! Whether a payout may go.

pub use crate::bindings::fraud::exports::railhead::rules::fraud::{Action, Hit, Verdict};
use crate::{Facts, Problem};

/// A pack that decides whether payouts may go.
pub trait FraudPack: Sized {
    /// Reads the text of `rules.toml`.
    ///
    /// # Errors
    /// Everything that is wrong in it, each with its place.
    fn open(rules: &str) -> Result<Self, Vec<Problem>>;

    /// Decides about one payout.
    fn assess(&self, facts: &Facts<'_>) -> Verdict;
}

impl Hit {
    /// A rule that matched, what it asks for, and why, in words for operators. Merchants read the
    /// host's neutral words; see [`Self::with_public`].
    #[must_use]
    pub fn new(label: &str, action: Action, reason: &str) -> Self {
        Self { label: label.to_owned(), action, reason: reason.to_owned(), public: None }
    }

    /// The same with words that merchants read.
    #[must_use]
    pub fn with_public(self, text: &str) -> Self {
        Self { public: Some(text.to_owned()), ..self }
    }
}

impl Verdict {
    /// The verdict of these hits: the most severe of them counts, and none means to allow.
    #[must_use]
    pub fn of(hits: Vec<Hit>) -> Self {
        let action = hits.iter().map(|hit| hit.action).max_by_key(|action| severity(*action));
        Self { action: action.unwrap_or(Action::Allow), hits }
    }
}

const fn severity(action: Action) -> u8 {
    match action {
        Action::Allow => 0,
        Action::Hold => 1,
        Action::Block => 2,
    }
}

/// Makes this crate a component that decides with the given [`FraudPack`].
#[macro_export]
macro_rules! export_fraud_pack {
    ($pack:ty) => {
        // On every target, so that a type that is no such pack is noticed on all of them.
        const _: fn(&str) -> ::std::result::Result<$pack, ::std::vec::Vec<$crate::Problem>> =
            <$pack as $crate::FraudPack>::open;

        #[cfg(target_family = "wasm")]
        const _: () = {
            $crate::export_pack!($pack, Fraud);
    $crate::bindings::fraud::export_fraud!(Exports with_types_in $crate::bindings::fraud);
        };
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merchants_read_only_what_is_written_for_them() {
        let hit = Hit::new("x", Action::Hold, "They did it before.");
        assert_eq!(hit.public, None);
        let hit = hit.with_public("We look at it.");
        assert_eq!(hit.public.as_deref(), Some("We look at it."));
        assert_eq!(hit.reason, "They did it before.");
    }

    #[test]
    fn the_most_severe_hit_counts() {
        let verdict = |actions: &[Action]| {
            let hits = actions.iter().map(|action| Hit::new("x", *action, "y")).collect();
            Verdict::of(hits).action
        };
        assert_eq!(verdict(&[]), Action::Allow);
        assert_eq!(verdict(&[Action::Allow]), Action::Allow);
        assert_eq!(verdict(&[Action::Hold, Action::Allow]), Action::Hold);
        assert_eq!(verdict(&[Action::Hold, Action::Block, Action::Allow]), Action::Block);
    }
}
