//! What networks say of payments that are not known here.

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
                "The network of {} spoke of {reference}, which was not sent there from here.",
                route.route.name
            ),
            evidence: serde_json::json!({ "reference": reference, "said": said }),
            opened_at: self.now(),
        };
        self.writer.work(case.opening(&self.ids)).await?;
        let is_open = cases::sql::is_open(self.db.pool(), &fingerprint).await?;
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

/// A text about nobody that is known here: whatever may be an account's number is masked.
pub(super) fn masked(text: &str) -> String {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    match digits <= DIGITS_SHOWN_MAX {
        true => text.to_owned(),
        false => text.chars().map(|c| if c.is_ascii_digit() { '*' } else { c }).collect(),
    }
}
