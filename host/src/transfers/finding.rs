//! What is known about a payment after a call, in one vocabulary: whether it was said in an
//! answer, to a question, or by the network itself.

use std::time::Duration;

use jiff::fmt::rfc2822;

use crate::money::Minor;
use crate::wasm::egress::{self, Answer, Exchange};
use crate::wasm::rail::{Broken, Called, Finding, Outcome, Receipt, Refusal, ReturnOfFunds};

use super::attempt::AttemptState;
use super::lanes::Reached;
use super::order::{Failure, Fixed, Step};

/// What is known about a payment. Only "paid", "refused" and "returned" are definite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    Paid(Receipt),
    Accepted(Receipt),
    Refused(Refusal),
    Returned(ReturnOfFunds),
    Unknown(String),
    NeverReceived(String),
}

/// Whether a byte of an earlier sending of the same reference may have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Earlier {
    Nothing,
    Left,
}

impl Learnt {
    /// From sending. What the host saw itself stands above what a guest says: without a byte
    /// having left of a call that moves money, nothing was paid; and a refusal before such a byte
    /// left says nothing about an earlier sending that did leave.
    pub(super) fn from_submit(called: &Called<Outcome>, before: Earlier) -> Self {
        match &called.result {
            Ok(Outcome::Paid(_) | Outcome::Accepted(_)) if !called.may_have_moved_money => {
                Self::Unknown("the rail claims an answer, but nothing was sent".into())
            }
            Ok(Outcome::Refused(refusal))
                if before == Earlier::Left && !called.may_have_moved_money =>
            {
                let why = "refused before it was sent again, but it had been sent before";
                Self::Unknown(format!("{why}: {}", refusal.message))
            }
            Ok(Outcome::Paid(receipt)) => Self::Paid(receipt.clone()),
            Ok(Outcome::Accepted(receipt)) => Self::Accepted(receipt.clone()),
            Ok(Outcome::Refused(refusal)) => Self::Refused(refusal.clone()),
            Ok(Outcome::Unknown(why)) => Self::Unknown(why.clone()),
            Err(broken) => Self::Unknown(broken.to_string()),
        }
    }

    /// From asking. An answer of a gateway other than the one that it was sent to proves that
    /// it was paid, and nothing else.
    pub(super) fn from_query(called: &Called<Finding>, same: Same) -> Self {
        let elsewhere = |what: &str| {
            Self::Unknown(format!("{what}, asked with other settings than it was sent with"))
        };
        match &called.result {
            Ok(Finding::Unknown(why)) => Self::Unknown(why.clone()),
            Ok(_) if !called.bytes_left => {
                Self::Unknown("the rail claims an answer, but nothing was asked".into())
            }
            Ok(Finding::Paid(receipt)) => Self::Paid(receipt.clone()),
            Ok(Finding::Accepted(receipt)) => Self::Accepted(receipt.clone()),
            Ok(Finding::Refused(refusal)) => match same {
                Same::Everything | Same::Place => Self::Refused(refusal.clone()),
                Same::Nothing => elsewhere("refused"),
            },
            Ok(Finding::Returned(funds)) => match same {
                Same::Everything | Same::Place => Self::Returned(funds.clone()),
                Same::Nothing => elsewhere("returned"),
            },
            Ok(Finding::NeverReceived(why)) => match same {
                Same::Everything => Self::NeverReceived(why.clone()),
                Same::Place | Same::Nothing => elsewhere("never received"),
            },
            Err(broken) => Self::Unknown(broken.to_string()),
        }
    }

    /// From what a network that is believed said by itself. What is not definite is asked about.
    pub(super) fn from_notice(finding: &Finding) -> Option<Self> {
        match finding {
            // Whoever speaks by himself has to say how much.
            Finding::Paid(receipt) if receipt.amount_minor.is_some() => {
                Some(Self::Paid(receipt.clone()))
            }
            Finding::Refused(refusal) => Some(Self::Refused(refusal.clone())),
            _ => None,
        }
    }

    /// The same, if it is about this amount: a network that names another one may be speaking
    /// of something else.
    pub(super) fn of(self, amount: Minor) -> Self {
        let said = match &self {
            Self::Paid(receipt) | Self::Accepted(receipt) => receipt.amount_minor,
            Self::Returned(funds) => Some(funds.amount_minor),
            Self::Refused(_) | Self::Unknown(_) | Self::NeverReceived(_) => None,
        };
        match said.filter(|said| *said != amount.units()) {
            Some(said) => {
                let sent = amount.units();
                Self::Unknown(format!("{}, of {said} where {sent} was sent", self.words()))
            }
            None => self,
        }
    }

    /// What came back, where that is less than this amount.
    pub(super) fn part(&self, amount: Minor) -> Option<Box<ReturnOfFunds>> {
        match self {
            Self::Returned(funds) if (1..amount.units()).contains(&funds.amount_minor) => {
                Some(Box::new(funds.clone()))
            }
            _ => None,
        }
    }

    /// What the network said on accepting or making it.
    pub(super) const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Paid(receipt) | Self::Accepted(receipt) => Some(receipt),
            _ => None,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::Paid(receipt) => format!("paid ({})", receipt.code),
            Self::Accepted(receipt) => format!("accepted ({})", receipt.code),
            Self::Refused(refusal) => format!("refused ({}): {}", refusal.code, refusal.message),
            Self::Returned(funds) => returned(funds, &funds.message),
            Self::Unknown(why) => format!("unknown: {why}"),
            Self::NeverReceived(why) => format!("never received: {why}"),
        }
    }

    /// One word for figures.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Paid(_) => "paid",
            Self::Accepted(_) => "accepted",
            Self::Refused(_) => "refused",
            Self::Returned(_) => "returned",
            Self::Unknown(_) => "unknown",
            Self::NeverReceived(_) => "never_received",
        }
    }

    pub(super) fn code(&self) -> Option<String> {
        match self {
            Self::Paid(receipt) | Self::Accepted(receipt) => Some(receipt.code.clone()),
            Self::Refused(refusal) => Some(refusal.code.clone()),
            Self::Returned(funds) => Some(funds.code.clone()),
            Self::Unknown(_) | Self::NeverReceived(_) => None,
        }
    }

    /// The step that a definite one is, and how its attempt stands then.
    pub(super) fn step(&self, fixed: Fixed) -> Option<(Step, AttemptState)> {
        match self {
            Self::Paid(_) => Some((Step::Paid(fixed), AttemptState::Paid)),
            Self::Refused(Refusal { code, message }) => {
                let failure = Failure { code: code.clone(), message: message.clone(), id: None };
                Some((Step::Refused(fixed, failure), AttemptState::Refused))
            }
            Self::Returned(ReturnOfFunds { code, message, network_id, .. }) => {
                let (code, message) = (code.clone(), message.clone());
                let failure = Failure { code, message, id: network_id.clone() };
                Some((Step::Returned(fixed, failure), AttemptState::Returned))
            }
            Self::Accepted(_) | Self::Unknown(_) | Self::NeverReceived(_) => None,
        }
    }
}

/// A return in words, with the network's own name for it: by that one which is told twice is known.
pub(super) fn returned(funds: &ReturnOfFunds, message: &str) -> String {
    format!("returned ({}{}): {message}", funds.code, own_name(funds))
}

/// Whether these words are of this return.
pub(super) fn is_of_return(words: Option<&str>, funds: &ReturnOfFunds) -> bool {
    let own = own_name(funds);
    own.is_empty() || words.is_some_and(|words| words.contains(&format!("{own})")))
}

fn own_name(funds: &ReturnOfFunds) -> String {
    funds.network_id.as_ref().map(|id| format!(", {id}")).unwrap_or_default()
}

/// Whether a route is configured as it was when an attempt was fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Same {
    /// In everything.
    Everything,
    /// In its address and settings, with other credentials.
    Place,
    /// Not even in that.
    Nothing,
}

impl Same {
    /// Of the fingerprint then, and those now, one under every master key: each of address and
    /// settings, and of credentials.
    pub(super) fn of(then: &str, now: &[String]) -> Self {
        let place = |fingerprint: &str| fingerprint.split('.').next().map(str::to_owned);
        match now.iter().any(|now| now == then) {
            true => Self::Everything,
            false if now.iter().any(|now| place(now) == place(then)) => Self::Place,
            false => Self::Nothing,
        }
    }
}

/// Whether a network was reached by a call. What this host itself kept back says nothing of it.
pub(super) fn reached<T>(called: &Called<T>) -> Reached {
    if matches!(called.result, Err(Broken::TimedOut(_))) {
        return Reached::No;
    }
    let mut judged = called.exchanges.iter().filter(|it| !it.is_kept_back).map(judge);
    judged.next_back().unwrap_or(Reached::Unasked)
}

/// How long to leave a network alone that says "too many requests" and no more.
const THROTTLED: Duration = Duration::from_secs(5);

fn judge(exchange: &Exchange) -> Reached {
    match &exchange.result {
        Ok(answer) if answer.status == 429 => {
            Reached::Throttled(retry_after(answer).unwrap_or(THROTTLED))
        }
        Ok(answer) if answer.status == 503 => {
            retry_after(answer).map_or(Reached::No, Reached::Throttled)
        }
        Ok(answer) if answer.status >= 500 => Reached::No,
        Ok(_) => Reached::Yes,
        Err(egress::Failure::NotSent(_)) => Reached::Absent,
        Err(_) => Reached::No,
    }
}

/// How long a network wants to be left alone: in seconds, or until an instant on its own clock.
fn retry_after(answer: &Answer) -> Option<Duration> {
    let header = |wanted: &str| {
        let mut headers = answer.headers.iter();
        headers.find(|(name, _)| name == wanted).map(|(_, value)| value.trim())
    };
    let value = header("retry-after")?;
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let instant = |text: &str| rfc2822::parse(text).ok().map(|zoned| zoned.timestamp());
    let pause = instant(value)?.duration_since(instant(header("date")?)?);
    pause.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_says_for_how_long_in_seconds_or_by_its_clock() {
        let saying = |status, headers: &[(&str, &str)]| {
            let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
            let answer = Answer { status, headers: headers.collect(), body: Vec::new() };
            judge(&Exchange { result: Ok(answer), ..Exchange::heard("POST", "/", b"") })
        };
        let after = |seconds| Reached::Throttled(Duration::from_secs(seconds));
        let date = ("date", "Fri, 20 Nov 2026 23:59:30 GMT");
        let later = ("retry-after", "Sat, 21 Nov 2026 00:01:00 GMT");
        assert_eq!(saying(429, &[("retry-after", "7")]), after(7));
        assert_eq!(saying(429, &[date, later]), after(90));
        assert_eq!(saying(503, &[("retry-after", " 30 ")]), after(30));
        for odd in [&[("retry-after", "soon")], &[later], &[("retry-after", "-1")]] {
            assert_eq!(saying(429, odd), Reached::Throttled(THROTTLED), "{odd:?}");
            assert_eq!(saying(503, odd), Reached::No, "{odd:?}");
        }
        assert_eq!(saying(200, &[("retry-after", "7")]), Reached::Yes);
    }

    fn called<T>((result, bytes_left): (T, bool)) -> Called<T> {
        let (exchanges, took, may_have_moved_money) = (Vec::new(), Duration::ZERO, bytes_left);
        Called { result: Ok(result), exchanges, bytes_left, may_have_moved_money, took }
    }

    /// What this host keeps back says nothing of the network; what failed before it does.
    #[test]
    fn a_network_is_judged_by_what_reached_it() {
        let failing = |how| Exchange { result: Err(how), ..Exchange::heard("GET", "/", b"") };
        let absent = failing(egress::Failure::NotSent("no".into()));
        let failed = failing(egress::Failure::NoAnswer("no".into()));
        let kept_back = Exchange { is_kept_back: true, ..absent.clone() };
        let after = |exchanges: Vec<Exchange>| {
            reached(&Called { exchanges, ..called((Outcome::Unknown("no".into()), false)) })
        };
        assert_eq!(after(vec![kept_back.clone()]), Reached::Unasked);
        assert_eq!(after(vec![failed.clone(), kept_back]), Reached::No);
        assert_eq!(after(vec![failed]), Reached::No);
        assert_eq!(after(vec![absent]), Reached::Absent);
        assert_eq!(after(Vec::new()), Reached::Unasked);
    }

    fn refusal() -> Refusal {
        Refusal { code: "57".into(), message: "no".into() }
    }

    fn receipt(amount_minor: Option<i64>) -> Receipt {
        Receipt { code: "00".into(), network_id: None, amount_minor, facts: Vec::new() }
    }

    #[test]
    fn another_amount_than_was_sent_is_not_believed() {
        let sent = Minor::new(100);
        for said in [None, Some(100)] {
            let paid = Learnt::Paid(receipt(said));
            assert_eq!(paid.clone().of(sent), paid);
        }
        let funds = |amount_minor| ReturnOfFunds {
            code: "R".into(),
            message: "no".into(),
            amount_minor,
            network_id: None,
        };
        assert!(matches!(Learnt::Paid(receipt(Some(99))).of(sent), Learnt::Unknown(_)));
        assert!(matches!(Learnt::Accepted(receipt(Some(1))).of(sent), Learnt::Unknown(_)));
        assert!(matches!(Learnt::Returned(funds(50)).of(sent), Learnt::Unknown(_)));
        assert_eq!(Learnt::Returned(funds(100)).of(sent), Learnt::Returned(funds(100)));
    }

    #[test]
    fn nothing_but_a_call_that_moves_money_can_have_paid() {
        let asked = |outcome| Called { may_have_moved_money: false, ..called((outcome, true)) };
        let paid = Learnt::from_submit(&asked(Outcome::Paid(receipt(None))), Earlier::Nothing);
        assert!(matches!(paid, Learnt::Unknown(_)), "{paid:?}");
        let refused = Learnt::from_submit(&asked(Outcome::Refused(refusal())), Earlier::Left);
        assert!(matches!(refused, Learnt::Unknown(_)), "{refused:?}");
    }

    #[test]
    fn a_refusal_before_a_byte_left_says_nothing_about_an_earlier_sending() {
        let refused = |left, before| {
            Learnt::from_submit(&called((Outcome::Refused(refusal()), left)), before)
        };
        assert_eq!(refused(false, Earlier::Nothing), Learnt::Refused(refusal()));
        assert_eq!(refused(true, Earlier::Left), Learnt::Refused(refusal()));
        assert!(matches!(refused(false, Earlier::Left), Learnt::Unknown(_)));
    }

    #[test]
    fn only_the_gateway_that_it_was_sent_to_can_say_that_it_never_came() {
        let never =
            |same| Learnt::from_query(&called((Finding::NeverReceived("25".into()), true)), same);
        // Under a new master key, and under the one that it was fixed with.
        let same = |now: &str| Same::of("a.b", &["x.y".to_owned(), now.to_owned()]);
        assert_eq!(never(same("a.b")), Learnt::NeverReceived("25".into()));
        for other in ["a.c", "c.b", ""] {
            assert!(matches!(never(same(other)), Learnt::Unknown(_)), "{other}");
        }
        let refused = |same| Learnt::from_query(&called((Finding::Refused(refusal()), true)), same);
        assert_eq!(refused(same("a.c")), Learnt::Refused(refusal()));
        assert!(matches!(refused(same("c.b")), Learnt::Unknown(_)));
        let paid = receipt(None);
        let from_elsewhere =
            Learnt::from_query(&called((Finding::Paid(paid.clone()), true)), same("c.d"));
        assert_eq!(from_elsewhere, Learnt::Paid(paid));
    }
}
