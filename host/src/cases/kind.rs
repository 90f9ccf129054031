//! What can be the matter, and what an operator can decide about it.

/// What is the matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum CaseKind {
    /// The wallet has its money back, and the bank says that it paid.
    PaidAfterFailure,
    /// The payout counts as paid, and the bank says that it did not pay.
    RefusedAfterPayment,
    /// A payout was paid, and the bank says that it paid another attempt of it as well.
    PaidTwice,
    /// Part of a payout came back.
    PartialReturn,
    /// A network spoke of a payment that this route did not make.
    UnknownReference,
    /// A payment left this host, and the database, restored since, has forgotten it.
    ForgottenTransfer,
    /// A bank has been asked about a payment for long, and nobody knows how it ended.
    OutcomeUnknown,
    /// A payout can neither be sent nor asked about: its rail makes no reference, its route is not
    /// there, or its recipient is blocked. Or this host fails at it.
    CannotSend,
    /// A network has a file of payments, or may have it, and does not say what it makes of it.
    FileUnacknowledged,
    /// A file may have left before the database was restored, and is held back.
    FileForgotten,
    /// A file cannot be made or delivered.
    FileStuck,
    /// A network has refused a whole file.
    FileRefused,
    /// A network says otherwise of a file than it said before.
    FileContradicted,
    /// A network has sent what nobody understands.
    UnreadableMessage,
    /// What a network leaves lying ready cannot be fetched.
    FeedUnreachable,
    /// A network refuses this host itself, not its payments.
    RouteRefused,
}

/// What an operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::EnumIter)]
pub enum Resolution {
    /// The recipient keeps the money: the wallet is debited again.
    Charge,
    /// The money came back to the settlement account by other means.
    Recovered,
    /// The platform bears it.
    WriteOff,
    /// The wallet gets everything back.
    GiveBack,
    /// The bank was wrong: the payout was paid.
    Uphold,
    /// The wallet gets the part that came back.
    Credit,
    /// The part was paid to the recipient again by other means.
    Forwarded,
    /// Looked at, and nothing is to be booked.
    Acknowledge,
}

impl CaseKind {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaidAfterFailure => "paid_after_failure",
            Self::RefusedAfterPayment => "refused_after_payment",
            Self::PaidTwice => "paid_twice",
            Self::PartialReturn => "partial_return",
            Self::UnknownReference => "unknown_reference",
            Self::ForgottenTransfer => "forgotten_transfer",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::CannotSend => "cannot_send",
            Self::FileUnacknowledged => "file_unacknowledged",
            Self::FileForgotten => "file_forgotten",
            Self::FileStuck => "file_stuck",
            Self::FileRefused => "file_refused",
            Self::FileContradicted => "file_contradicted",
            Self::UnreadableMessage => "unreadable_message",
            Self::FeedUnreachable => "feed_unreachable",
            Self::RouteRefused => "route_refused",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|kind| kind.as_str() == text)
    }

    /// What an operator may decide, the likeliest first.
    #[must_use]
    pub const fn resolutions(self) -> &'static [Resolution] {
        use Resolution as R;
        match self {
            Self::PaidAfterFailure => &[R::Charge, R::Recovered, R::WriteOff],
            Self::RefusedAfterPayment => &[R::GiveBack, R::Uphold],
            Self::PaidTwice => &[R::Recovered, R::WriteOff],
            Self::PartialReturn => &[R::Credit, R::Forwarded],
            Self::UnknownReference
            | Self::ForgottenTransfer
            | Self::OutcomeUnknown
            | Self::CannotSend
            | Self::FileUnacknowledged
            | Self::FileForgotten
            | Self::FileStuck
            | Self::FileRefused
            | Self::FileContradicted
            | Self::UnreadableMessage
            | Self::FeedUnreachable
            | Self::RouteRefused => &[R::Acknowledge],
        }
    }

    /// Whether money stands in the suspense account until it is resolved.
    #[must_use]
    pub const fn holds_money(self) -> bool {
        matches!(
            self,
            Self::PaidAfterFailure
                | Self::RefusedAfterPayment
                | Self::PaidTwice
                | Self::PartialReturn
        )
    }

    /// What the host suggests.
    #[must_use]
    pub const fn suggestion(self) -> &'static str {
        match self {
            Self::PaidAfterFailure => {
                "Check the bank's statement. If the recipient has the money, charge the wallet, \
                 or write the amount off; if it came back to the settlement account, it is \
                 recovered."
            }
            Self::RefusedAfterPayment => {
                "Check the bank's statement. If the recipient has no money, give the payout \
                 back; if it has, uphold the payment."
            }
            Self::PaidTwice => {
                "Check the statements of both banks. If one of the two came back to the \
                 settlement account, it is recovered; otherwise claim it from the recipient, \
                 and write it off if that fails."
            }
            Self::PartialReturn => {
                "Find out why it came back. Where two attempts were paid, or the wallet has its \
                 money already, say that it was forwarded, and see to the other case. Otherwise \
                 credit the part to the wallet, or, if it was sent to the recipient again by other \
                 means, say that it was forwarded. Where a part was credited before, this may be \
                 all of it: say that it was forwarded, and credit what is missing by hand."
            }
            Self::UnknownReference => {
                "Find out whether the network mixed up its customers, or another system uses \
                 the same institution code. A report counts for its file only after that."
            }
            Self::ForgottenTransfer => {
                "The money may have left. Ask the bank, and credit or debit the wallet \
                 concerned if its payout is not in these books; beware of the merchant paying \
                 it again."
            }
            Self::OutcomeUnknown => {
                "Ask the bank by other means, and mark the payout as paid or failed with what \
                 it says. The host goes on asking meanwhile. A payment by file waits for you: \
                 acknowledge this where it may be paid with its file or, if that was refused, join \
                 another one."
            }
            Self::CannotSend => {
                "See the summary, the evidence and the log for the reason. Restore the route, or \
                 repair the rail's settings or version; where its recipient is blocked, take the \
                 block off if it may be paid. A payout that is still queued can be cancelled. The \
                 host goes on trying meanwhile."
            }
            Self::FileUnacknowledged
            | Self::FileForgotten
            | Self::FileStuck
            | Self::FileRefused
            | Self::FileContradicted
            | Self::UnreadableMessage
            | Self::FeedUnreachable
            | Self::RouteRefused => self.about_networks(),
        }
    }

    /// The same of what is about a file, or a network.
    const fn about_networks(self) -> &'static str {
        match self {
            Self::FileUnacknowledged => {
                "Ask the bank whether it has the file and carries it out. If it never had it, have \
                 the same bytes delivered again; nothing else may be sent in its place."
            }
            Self::FileForgotten => {
                "Ask the bank whether it has a file of this window. If it has, its report ends the \
                 case, or mark the payouts with what it says. If it never had one, release the \
                 file."
            }
            Self::FileStuck => {
                "Repair what the summary names: the route's settings, the rail, or the way to the \
                 bank; or let go what is kept back. The host goes on trying meanwhile. A payout \
                 that no file can carry is marked failed, and the others leave without it."
            }
            Self::FileRefused => {
                "Find out from the bank's words what is wrong. Its payments join the next file by \
                 themselves, once; hold that file back if it would be refused as well."
            }
            Self::FileContradicted => {
                "Ask the bank which of the two is true, and mark the payouts of the file with what \
                 it says."
            }
            Self::UnreadableMessage => {
                "Ask the network what it meant: it may be money that came back, or the end of \
                 payments. The message lies in the inbox as it arrived; one that has had no effect \
                 is tried on, and has it once what the summary names is repaired."
            }
            Self::FeedUnreachable => {
                "Look at the route's settings, and ask the bank whether a password or a key has \
                 run out. Acknowledgements and returns may lie there; the host goes on asking \
                 meanwhile."
            }
            Self::RouteRefused => {
                "Look at the account with the network: its balance, its limits, and whether its \
                 credentials are still good. Each minute one payment tries it. Those that it has \
                 refused so far have failed, and their wallets have the money back."
            }
            _ => "",
        }
    }
}

impl Resolution {
    /// The word used on the wire and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Charge => "charge",
            Self::Recovered => "recovered",
            Self::WriteOff => "write_off",
            Self::GiveBack => "give_back",
            Self::Uphold => "uphold",
            Self::Credit => "credit",
            Self::Forwarded => "forwarded",
            Self::Acknowledge => "acknowledge",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        use strum::IntoEnumIterator as _;
        Self::iter().find(|resolution| resolution.as_str() == text)
    }

    /// Whether it moves money.
    #[must_use]
    pub const fn moves_money(self) -> bool {
        !matches!(self, Self::Acknowledge)
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator as _;

    use super::*;

    #[test]
    fn every_resolution_belongs_to_a_kind() {
        for resolution in Resolution::iter() {
            let kinds = CaseKind::iter().filter(|kind| kind.resolutions().contains(&resolution));
            assert!(kinds.count() > 0, "{resolution:?}");
            assert_eq!(Resolution::parse(resolution.as_str()), Some(resolution));
        }
        assert!(CaseKind::iter().all(|kind| CaseKind::parse(kind.as_str()) == Some(kind)));
    }
}
