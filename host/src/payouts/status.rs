//! Where a payout stands.

/// Where a payout stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Status {
    /// Waits for a teammate's approval; holds no money.
    Draft,
    /// Held by a fraud rule for the operator; holds no money.
    AwaitingAdminReview,
    /// Debited, waits to be sent.
    Queued,
    /// Being sent, or sent and not known to have ended.
    Processing,
    /// The rail says that it is paid.
    Paid,
    /// The operator says so, on evidence.
    PaidManual,
    /// The rail refused it; the money is back in the wallet.
    Failed,
    /// The operator says so, on evidence; the money is back in the wallet.
    FailedManual,
    /// It was paid and came back.
    Reversed,
    /// Taken back before it was sent.
    Cancelled,
}

impl Status {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::AwaitingAdminReview => "awaiting_admin_review",
            Self::Queued => "queued",
            Self::Processing => "processing",
            Self::Paid => "paid",
            Self::PaidManual => "paid_manual",
            Self::Failed => "failed",
            Self::FailedManual => "failed_manual",
            Self::Reversed => "reversed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|status| status.as_str() == text)
    }

    /// Whether the recipient has the money, as far as is known.
    #[must_use]
    pub const fn is_paid(self) -> bool {
        matches!(self, Self::Paid | Self::PaidManual)
    }

    /// Whether it goes no further before a person has decided.
    #[must_use]
    pub const fn waits_for_somebody(self) -> bool {
        matches!(self, Self::Draft | Self::AwaitingAdminReview)
    }

    /// Whether nothing more is expected to happen.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Draft | Self::AwaitingAdminReview | Self::Queued | Self::Processing)
    }

    /// The status, where it is none of those on the way from queued to paid.
    #[must_use]
    pub const fn unusual(self) -> Option<&'static str> {
        match self {
            Self::Queued | Self::Processing | Self::Paid => None,
            _ => Some(self.as_str()),
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
