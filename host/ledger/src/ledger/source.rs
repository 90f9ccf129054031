//! Why an entry was made: the contract's ledger sources.

/// Why an entry was made: the contract's ledger sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, strum::EnumIter)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words are the contract's own")]
pub enum Source {
    VirtualAccountCredit,
    VirtualAccountCreditFee,
    PayoutDebit,
    PayoutFee,
    PayoutReversal,
    PayoutFeeReversal,
    AdminCredit,
    AdminDebit,
    PromotionalCredit,
    ReconciliationAdjust,
    StampDutyCollected,
    FxConversion,
    CollectionRefund,
    DemoSeed,
    DemoSelfFund,
}

impl Source {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::VirtualAccountCredit => "virtual_account_credit",
            Self::VirtualAccountCreditFee => "virtual_account_credit_fee",
            Self::PayoutDebit => "payout_debit",
            Self::PayoutFee => "payout_fee",
            Self::PayoutReversal => "payout_reversal",
            Self::PayoutFeeReversal => "payout_fee_reversal",
            Self::AdminCredit => "admin_credit",
            Self::AdminDebit => "admin_debit",
            Self::PromotionalCredit => "promotional_credit",
            Self::ReconciliationAdjust => "reconciliation_adjust",
            Self::StampDutyCollected => "stamp_duty_collected",
            Self::FxConversion => "fx_conversion",
            Self::CollectionRefund => "collection_refund",
            Self::DemoSeed => "demo_seed",
            Self::DemoSelfFund => "demo_self_fund",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|source| source.as_str() == text)
    }

    /// Whether an entry of this source, as a credit, is money that came in.
    #[must_use]
    pub const fn is_funding(self) -> bool {
        matches!(
            self,
            Self::VirtualAccountCredit
                | Self::AdminCredit
                | Self::PromotionalCredit
                | Self::ReconciliationAdjust
                | Self::DemoSeed
                | Self::DemoSelfFund
        )
    }
}
