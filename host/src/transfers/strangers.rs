//! What networks say of payments that are not known here.

use std::sync::atomic::Ordering;

use sha2::{Digest as _, Sha256};

use crate::cases::{self, Case, CaseKind};
use crate::env::Env;
use crate::error::Problem;
use crate::ledger::Command;
use crate::rails::ReadyRoute;
use crate::wasm::rail::{Finding, News, Notice, ReturnOfFunds, Subject};

use super::Transfers;
use super::notice::{Heard, Taken, said};

/// Longest name of a payment that is shown where nobody knows it.
const REFERENCE_SHOWN_MAX: usize = 80;

/// Characters of a stranger's words that are kept.
const WORDS_SHOWN_MAX: usize = 300;

/// So many digits in a row may be an account's number; a date has eight.
const ACCOUNT_DIGITS_MIN: usize = 9;

/// What one message may open cases about; of the others, one case tells how many there are.
const CASES_MAX: usize = 20;

/// Texts with more digits than that are masked, where nobody knows what they are.
const DIGITS_SHOWN_MAX: usize = 6;

/// What a network says of a payment that is not known here.
struct Stranger {
    reference: String,
    said: String,
    fingerprint: String,
}

impl Stranger {
    fn of(route: &ReadyRoute, heard: &Heard, Notice { about, news }: &Notice) -> Self {
        let (Subject::Reference(named) | Subject::NetworkId(named) | Subject::File(named)) = about;
        let shown = named.chars().filter(|c| !c.is_control()).take(REFERENCE_SHOWN_MAX);
        let reference: String = shown.collect();
        let said = match news {
            News::Ask => "there is news".to_owned(),
            News::Found(finding) => said(finding, masked),
            News::Corrected(correction) => format!("corrected ({})", correction.code),
        };
        // Two messages that say the same of different money are two, by the network's own name
        // for it or, where nothing is said, by all of their words.
        let own = match news {
            News::Found(Finding::Returned(ReturnOfFunds { network_id, .. })) => network_id.clone(),
            News::Ask | News::Corrected(_) => Some(heard.digest.clone()),
            News::Found(_) => None,
        };
        let own = own.unwrap_or_default();
        let digest = hex::encode(Sha256::digest(format!("{reference}\n{said}\n{own}")));
        let (env, rail) = (route.route.env, &route.route.rail);
        let fingerprint = format!("unknown_reference/{env}/{rail}/{digest}");
        Self { reference, said, fingerprint }
    }
}

impl Transfers {
    /// Opens a case about a payment that did not go over a route of whoever speaks of it; answers
    /// whether a person has looked at it.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn unknown(
        &self,
        route: &ReadyRoute,
        heard: &Heard,
        notice: &Notice,
    ) -> Result<Taken, Problem> {
        let Stranger { reference, said, fingerprint } = Stranger::of(route, heard, notice);
        let (env, rail) = (route.route.env, &route.route.rail);
        if env == Env::Test {
            tracing::info!(rail.name = rail, reference, "news of a payment unknown here");
            // Nobody looks at cases of the sandbox.
            return Ok(Taken::LookedAt);
        }
        let of_message = heard.strangers.fetch_add(1, Ordering::Relaxed);
        let (whom, fingerprint) = match of_message < CASES_MAX {
            true => (format!("{reference}, which was"), fingerprint),
            // One case for all others: somebody's whole report may have come here.
            false => (
                format!("more than {CASES_MAX} payments at once, which were"),
                format!("unknown_reference/{env}/{rail}/{}", heard.digest),
            ),
        };
        if of_message > CASES_MAX {
            return self.looked_at(&fingerprint).await;
        }
        let case = Case {
            id: self.ids.id(),
            kind: CaseKind::UnknownReference,
            fingerprint: fingerprint.clone(),
            env,
            merchant_id: None,
            subject_type: "route",
            subject_id: route.route.id.to_string(),
            route: Some(route.route.name.clone()),
            amount: None,
            summary: format!(
                "The network of {} spoke of {whom} not sent there from here.",
                route.route.name
            ),
            evidence: serde_json::json!({ "reference": reference, "said": said }),
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await?;
        self.looked_at(&fingerprint).await
    }

    async fn looked_at(&self, fingerprint: &str) -> Result<Taken, Problem> {
        let is_open = cases::sql::is_open(self.db.pool(), fingerprint).await?;
        Ok(if is_open { Taken::Unknown } else { Taken::LookedAt })
    }

    /// Ends the case about what turned out to be ours, if there is one.
    ///
    /// # Errors
    /// The database cannot be written.
    pub(super) async fn no_longer_a_stranger(
        &self,
        route: &ReadyRoute,
        heard: &Heard,
        notice: &Notice,
    ) -> Result<(), Problem> {
        if !heard.was_unknown || route.route.env == Env::Test {
            return Ok(());
        }
        let Stranger { fingerprint, .. } = Stranger::of(route, heard, notice);
        let evidence = "It became known that the payment went out from here.".to_owned();
        let ended = cases::sql::Ended { of: fingerprint, evidence, at: self.now() };
        let rows = vec![cases::sql::CASES_ENDED.change(&ended)];
        self.writer.work(Command::rows(rows)).await.map(drop)
    }
}

/// A text about nobody that is known here: whatever may be an account's number is masked. The
/// fingerprint of a server's key is none.
pub(super) fn masked(text: &str) -> String {
    let words = || text.split_inclusive(' ');
    let may_be_one = |word: &&str| !word.starts_with("SHA256:");
    let digits = words().filter(may_be_one).flat_map(str::chars).filter(|c| c.is_numeric());
    if digits.count() <= DIGITS_SHOWN_MAX {
        return text.to_owned();
    }
    let shown = |word: &str| match may_be_one(&word) {
        true => word.chars().map(|c| if c.is_numeric() { '*' } else { c }).collect(),
        false => word.to_owned(),
    };
    words().map(shown).collect()
}

/// What a stranger says of why something failed, as it is kept and shown: masked, and not long.
pub(super) fn presentable(text: &str) -> String {
    let shown = text.chars().filter(|c| !c.is_control()).take(WORDS_SHOWN_MAX);
    masked(&shown.collect::<String>())
}

/// A file's name as it is shown: dates and numbers of files stay, what is as long as an account's
/// number does not.
pub(super) fn named(name: &str) -> String {
    let (mut shown, mut digits) = (String::new(), String::new());
    for c in name.chars().filter(|c| !c.is_control()).chain(['\0']) {
        if c.is_numeric() {
            digits.push(c);
            continue;
        }
        match digits.chars().count() < ACCOUNT_DIGITS_MIN {
            true => shown.push_str(&digits),
            false => shown.extend(digits.chars().map(|_| '*')),
        }
        digits.clear();
        shown.push(c);
    }
    shown.pop();
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_an_account_is_not_shown() {
        assert_eq!(named("ACH-20261123-00000001.ach"), "ACH-20261123-00000001.ach");
        assert_eq!(named("IAT 000123456789 J SMITH.txt"), "IAT ************ J SMITH.txt");
        assert_eq!(named("1234567890"), "**********");
        assert_eq!(masked("of ٠١٢٣٤٥٦٧٨"), "of *********");
        assert_eq!(
            masked("is SHA256:fe8kJ3456789, of 12345678"),
            "is SHA256:fe8kJ3456789, of ********"
        );
        assert_eq!(presentable(&"a".repeat(9_000)).len(), WORDS_SHOWN_MAX);
    }
}
