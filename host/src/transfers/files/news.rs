//! What a network says of a whole file.

use std::sync::Arc;
use std::time::Duration;

use crate::cases::CaseKind;
use crate::clock::Moment;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::ReadyRoute;
use crate::wasm::rail::{Finding, News, Receipt, Refusal};

use super::super::Transfers;
use super::super::attempt;
use super::super::calls::Calls;
use super::super::finding::Learnt;
use super::super::notice::{Heard, Taken};
use super::super::order::Feature;
use super::super::strangers::masked;
use super::claims;
use super::delivery::{Repeats, repeats};
use super::entries;
use super::table::{self, FileState, PaymentFile};

/// How far the clocks of two hosts may be apart: what one heard a moment before the other sent the
/// file is of that file.
const HEARD_BEFORE_SENT_MAX: Duration = Duration::from_secs(120);

/// How long whoever has made a file of the sandbox has its payments to himself.
const SANDBOX_LATE: Duration = Duration::from_secs(2);

impl Transfers {
    /// Gives news of a file its effect.
    ///
    /// # Errors
    /// The database failed.
    pub(in super::super) async fn take_about_file<F: Feature>(
        &self,
        feature: &F,
        routes: &[Arc<ReadyRoute>],
        (identity, news): (&str, &News),
        heard: &Heard,
    ) -> Result<Taken, Problem> {
        let mut of_route = None;
        for route in routes {
            let file = table::by_identity(self.db.pool(), &route.route.id, identity).await?;
            of_route = of_route.or(file.map(|file| (route, file)));
        }
        let Some((route, mut file)) = of_route else { return Ok(Taken::Unknown) };
        loop {
            // What was said before it left is of another one. One that was held back after a
            // restore may have left before.
            let latest = heard.received_at.after(HEARD_BEFORE_SENT_MAX);
            if file.restored_at.is_none()
                && file.first_sent_at.is_none_or(|sent_at| sent_at > latest)
            {
                return Ok(Taken::Unknown);
            }
            let finding = match news {
                News::Found(finding) if heard.is_believed() => finding,
                News::Found(_) | News::Ask | News::Corrected(_) => {
                    tracing::info!(file.id = %file.id, "news of a file that says nothing");
                    return Ok(Taken::Acted);
                }
            };
            self.take_finding(feature, route, &file, (finding, heard)).await?;
            let now = table::get(self.db.pool(), &file.id).await?;
            match now {
                // Somebody had it delivered again meanwhile: what was said is of an earlier copy.
                Some(now) if now.deliveries != file.deliveries => file = now,
                _ => return Ok(Taken::Acted),
            }
        }
    }

    async fn take_finding<F: Feature>(
        &self,
        feature: &F,
        route: &Arc<ReadyRoute>,
        file: &PaymentFile,
        (finding, heard): (&Finding, &Heard),
    ) -> Result<(), Problem> {
        match finding {
            Finding::Accepted(receipt) | Finding::Paid(receipt)
                if receipt.amount_minor.is_some_and(|said| said != file.amount_minor) =>
            {
                let said = receipt.amount_minor.unwrap_or_default();
                let why = format!("acknowledges {said} where {} was sent", file.amount_minor);
                self.says_otherwise(file, &why).await
            }
            Finding::Accepted(receipt) | Finding::Paid(receipt) => {
                self.acknowledged(file, &receipt.code).await?;
                self.contradict_marks(feature, route, file, (finding, heard)).await
            }
            // Of an earlier copy that may be there it says nothing.
            Finding::Refused(Refusal { code, message }) if has_other_copies(route, file) => {
                self.refused_a_copy(file, (code, message)).await
            }
            Finding::Refused(Refusal { code, message }) => {
                self.refused(file, (code, message)).await?;
                self.contradict_marks(feature, route, file, (finding, heard)).await
            }
            Finding::Unknown(why) | Finding::NeverReceived(why) => {
                self.says_otherwise(file, &masked(why)).await
            }
            Finding::Returned(_) => {
                tracing::warn!(file.id = %file.id, "news of a file that ends nothing");
                Ok(())
            }
        }
    }

    /// The network carries a file out.
    async fn acknowledged(&self, file: &PaymentFile, code: &str) -> Result<(), Problem> {
        let (now, to) = (self.now(), (FileState::Acknowledged, code, "acknowledged"));
        if !claims::answered(&self.db, file, to, now).await?
            && !self.is_the_same(file, FileState::Acknowledged).await?
        {
            return Ok(());
        }
        self.entries_due(file, file.settles_at.max(now)).await?;
        self.end_file_cases(file, format!("It was acknowledged ({code}).")).await?;
        self.wake();
        Ok(())
    }

    /// What an operator has ended meanwhile goes the way of its file: where he has decided
    /// otherwise, the network contradicts the books.
    async fn contradict_marks<F: Feature>(
        &self,
        feature: &F,
        route: &ReadyRoute,
        file: &PaymentFile,
        (finding, heard): (&Finding, &Heard),
    ) -> Result<(), Problem> {
        for attempt in attempt::list_marked_in_file(self.db.pool(), &file.id).await? {
            let Some(object) = feature.load(&attempt.transfer_id).await? else { continue };
            let order = feature.order(&object)?;
            let code = "acknowledged".to_owned();
            let network_id = attempt.network_id.clone();
            let receipt = Receipt { code, network_id, amount_minor: None, facts: Vec::new() };
            let learnt = match finding {
                Finding::Refused(refusal) => Learnt::Refused(refusal.clone()),
                _ => Learnt::Paid(receipt),
            };
            let calls = Calls { engine: self, order: &order };
            let by = (&*route.rail, heard.operation);
            let evidence = calls.evidence(Some(&attempt), by, &heard.called, &learnt.words());
            self.late(feature, &attempt, (learnt, evidence)).await?;
        }
        Ok(())
    }

    /// There is something to do about the payments of a file. In the sandbox whoever has made
    /// the file does it, unless he has given up waiting.
    async fn entries_due(&self, file: &PaymentFile, at: Moment) -> Result<(), Problem> {
        let at = match file.env {
            Env::Live => at,
            Env::Test => at.after(SANDBOX_LATE),
        };
        Ok(entries::make_due(&self.db, &file.id, at).await?)
    }

    /// The network will have none of it: its payments join another file.
    pub(super) async fn refused(
        &self,
        file: &PaymentFile,
        (code, message): (&str, &str),
    ) -> Result<(), Problem> {
        let message = masked(message);
        let (now, to) = (self.now(), (FileState::Refused, code, message.as_str()));
        if !claims::answered(&self.db, file, to, now).await?
            && !self.is_the_same(file, FileState::Refused).await?
        {
            return Ok(());
        }
        self.entries_due(file, now).await?;
        self.end_file_cases(file, format!("It was refused ({code}).")).await?;
        let file =
            PaymentFile { code: Some(code.to_owned()), message: Some(message), ..file.clone() };
        self.tell_of_refusal(&file).await?;
        self.wake();
        Ok(())
    }

    /// Tells a person that a network has refused a whole file.
    pub(super) async fn tell_of_refusal(&self, file: &PaymentFile) -> Result<(), Problem> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (name, code, message) = (text(&file.name), text(&file.code), text(&file.message));
        let summary = format!("{} has refused the file {name} ({code}): {message}", file.route);
        let evidence = serde_json::json!({ "name": name, "code": code, "entries": file.entries });
        self.file_case(file, (CaseKind::FileRefused, "refused", summary), evidence).await
    }

    /// What a network says of a file does not fit, and only a person can find out.
    async fn says_otherwise(&self, file: &PaymentFile, why: &str) -> Result<(), Problem> {
        let name = file.name.as_deref().unwrap_or_default();
        let summary = format!("Of the file {name}, {} says: {why}.", file.route);
        // The same words mean something else once it has answered.
        let said = format!("{} {why}", file.state.as_str());
        let case = (CaseKind::FileContradicted, said.as_str(), summary);
        self.file_case(file, case, serde_json::json!({ "name": name, "said": why })).await
    }

    /// A copy of a file was refused that was delivered more than once: the one before may be
    /// carried out, and only a person can find out.
    async fn refused_a_copy(
        &self,
        file: &PaymentFile,
        (code, message): (&str, &str),
    ) -> Result<(), Problem> {
        let (name, message) = (file.name.as_deref().unwrap_or_default(), masked(message));
        let said = format!("{} {} {code}", file.state.as_str(), file.deliveries);
        let summary = format!(
            "{} has refused a copy of {name} ({code}: {message}), which was delivered {} times. \
             An earlier copy may be carried out.",
            file.route, file.deliveries
        );
        let evidence = serde_json::json!({ "name": name, "code": code, "entries": file.entries });
        self.file_case(file, (CaseKind::FileContradicted, &said, summary), evidence).await
    }

    /// Whether the network has said the same before, so that what follows may have been cut off.
    /// Where it has said otherwise, nothing more leaves over its route until a person has looked.
    async fn is_the_same(&self, file: &PaymentFile, said: FileState) -> Result<bool, Problem> {
        let now = table::get(self.db.pool(), &file.id).await?;
        let Some(now) = now.filter(|now| now.state != said) else { return Ok(true) };
        if now.deliveries != file.deliveries {
            return Ok(false);
        }
        claims::contradict(&self.db, file).await?;
        let name = file.name.as_deref().unwrap_or_default();
        let summary = format!(
            "{} says that the file {name} is {}, and it stands here as {}.",
            file.route,
            said.as_str(),
            now.state.as_str()
        );
        let case = (CaseKind::FileContradicted, said.as_str(), summary);
        let evidence = serde_json::json!({ "name": name, "said": said.as_str() });
        self.file_case(file, case, evidence).await?;
        Ok(false)
    }
}

/// Whether more than one delivery of a file may have arrived, each of which is another file to the
/// network.
fn has_other_copies(route: &ReadyRoute, file: &PaymentFile) -> bool {
    // One that is under way has not been counted yet.
    let copies = file.copies + i64::from(file.state == FileState::Sending);
    copies > 1 && repeats(route) == Repeats::AreMore
}
