//! What a network says of a whole file.

use std::sync::Arc;

use crate::cases::CaseKind;
use crate::env::Env;
use crate::error::Problem;
use crate::rails::route::ReadyRoute;
use crate::wasm::rail::{Finding, News, Receipt, Refusal};

use super::super::Transfers;
use super::super::attempt;
use super::super::calls::Calls;
use super::super::finding::Learnt;
use super::super::notice::{Heard, Taken};
use super::super::order::Feature;
use super::entries;
use super::table::{self, FileState, PaymentFile};

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
        let mut found = None;
        for route in routes {
            let file = table::by_identity(self.db.pool(), &route.route.id, identity).await?;
            found = found.or(file);
        }
        // What never left is another's.
        let is_ours = |file: &PaymentFile| file.may_have_left || file.deliveries > 0;
        let Some(file) = found.filter(is_ours) else { return Ok(Taken::Unknown) };
        let finding = match news {
            News::Found(finding) if heard.is_believed() => finding,
            News::Found(_) | News::Ask | News::Corrected(_) => {
                tracing::info!(file.id = %file.id, "news of a file that says nothing");
                return Ok(Taken::Acted);
            }
        };
        match finding {
            Finding::Accepted(receipt) | Finding::Paid(receipt) => {
                self.acknowledged(&file, &receipt.code).await?;
                self.contradict_marks(feature, routes, &file, heard).await?;
            }
            Finding::Refused(Refusal { code, message }) => {
                self.refused(&file, (code, message)).await?;
            }
            Finding::Returned(_) | Finding::Unknown(_) | Finding::NeverReceived(_) => {
                tracing::warn!(file.id = %file.id, ?finding, "news of a file that ends nothing");
            }
        }
        Ok(Taken::Acted)
    }

    /// The network carries a file out.
    async fn acknowledged(&self, file: &PaymentFile, code: &str) -> Result<(), Problem> {
        let (now, to) = (self.now(), (FileState::Acknowledged, code, "acknowledged"));
        if !table::answered(&self.db, &file.id, to, now).await? {
            return self.contradicted(file, FileState::Refused, "acknowledged").await;
        }
        self.entries_due(file, file.settles_at.max(now)).await?;
        let evidence = format!("It was acknowledged ({code}).");
        self.end_file_case(file, CaseKind::FileUnacknowledged, evidence).await?;
        self.wake();
        Ok(())
    }

    /// What an operator has ended meanwhile is carried out all the same: where he has given it
    /// back, the network contradicts the books.
    async fn contradict_marks<F: Feature>(
        &self,
        feature: &F,
        routes: &[Arc<ReadyRoute>],
        file: &PaymentFile,
        heard: &Heard,
    ) -> Result<(), Problem> {
        let Some(route) = routes.iter().find(|route| route.route.id == file.route_id) else {
            return Ok(());
        };
        for attempt in attempt::list_marked_in_file(self.db.pool(), &file.id).await? {
            let Some(object) = feature.load(&attempt.transfer_id).await? else { continue };
            let order = feature.order(&object)?;
            let code = "acknowledged".to_owned();
            let network_id = attempt.network_id.clone();
            let receipt = Receipt { code, network_id, amount_minor: None, facts: Vec::new() };
            let learnt = Learnt::Paid(receipt);
            let calls = Calls { engine: self, order: &order };
            let by = (&*route.rail, heard.operation);
            let evidence = calls.evidence(Some(&attempt), by, &heard.called, &learnt.words());
            self.late(feature, &attempt, (learnt, evidence)).await?;
        }
        Ok(())
    }

    /// There is something to do about the payments of a file. In the sandbox whoever has made
    /// the file does it.
    async fn entries_due(
        &self,
        file: &PaymentFile,
        at: crate::clock::Moment,
    ) -> Result<(), Problem> {
        match file.env {
            Env::Live => Ok(entries::make_due(&self.db, &file.id, at).await?),
            Env::Test => Ok(()),
        }
    }

    /// The network will have none of it: its payments join another file.
    pub(super) async fn refused(
        &self,
        file: &PaymentFile,
        (code, message): (&str, &str),
    ) -> Result<(), Problem> {
        let (now, to) = (self.now(), (FileState::Refused, code, message));
        if !table::answered(&self.db, &file.id, to, now).await? {
            return self.contradicted(file, FileState::Acknowledged, "refused").await;
        }
        self.entries_due(file, now).await?;
        self.end_file_case(file, CaseKind::FileUnacknowledged, format!("Refused ({code})."))
            .await?;
        let name = file.name.as_deref().unwrap_or_default();
        let summary = format!("{} has refused the file {name} ({code}): {message}", file.route);
        let evidence = serde_json::json!({ "name": name, "code": code, "entries": file.entries });
        self.file_case(file, (CaseKind::FileRefused, summary), evidence).await?;
        self.wake();
        Ok(())
    }

    /// It was answered before: the same way, or otherwise, and then a person has to look.
    async fn contradicted(
        &self,
        file: &PaymentFile,
        opposite: FileState,
        said: &str,
    ) -> Result<(), Problem> {
        let now = table::get(self.db.pool(), &file.id).await?;
        if now.is_none_or(|file| file.state != opposite) {
            return Ok(());
        }
        let name = file.name.as_deref().unwrap_or_default();
        let summary = format!(
            "{} says that the file {name} is {said}, and said before that it is {}.",
            file.route,
            opposite.as_str()
        );
        let case = (CaseKind::FileContradicted, summary);
        self.file_case(file, case, serde_json::json!({ "name": name, "said": said })).await
    }
}
