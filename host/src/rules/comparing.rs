//! Handing decisions to whoever asks the pack in shadow about them.

use tokio::sync::mpsc;

use crate::clock::Moment;
use crate::config::limits;

use super::fraud::Ruling;

/// A decision that a pack in shadow is to make too.
pub struct Compared {
    /// The payout that was decided about.
    pub payout_id: String,
    /// The merchant who wanted to pay.
    pub merchant_id: String,
    /// `test` or `live`.
    pub env: &'static str,
    /// How it was decided.
    pub ruling: Ruling,
    /// When it was decided.
    pub at: Moment,
}

/// The way to the task that compares.
#[derive(Clone, Debug)]
pub struct Comparing(mpsc::Sender<Compared>);

/// The way there, and what arrives.
#[must_use]
pub fn comparing() -> (Comparing, mpsc::Receiver<Compared>) {
    let (sender, receiver) = mpsc::channel(limits::SHADOW_QUEUE_MAX);
    (Comparing(sender), receiver)
}

impl Comparing {
    /// Has a decision compared, if a pack is in shadow. Under heavy load some are not.
    pub fn hand_over(&self, compared: Compared) {
        if compared.ruling.assignment.shadow.is_some() {
            let _ = self.0.try_send(compared);
        }
    }
}
