//! What is wrong with the rows of a batch, as it is told: everything of one kind at once.
//!
//! What cannot be told by row (a malformed field, a recipient that is blocked, a network that does
//! not answer) ends the looking with the first one, and names the row in field and message.

use serde_json::{Value, json};

use crate::error::{ErrorCode, Problem};
use crate::ledger::{Decided, Effects};
use crate::rules::Ruling;

use super::request::NewRow;

/// The name of the list of rows, in fields and messages.
pub(super) const ITEMS: &str = "items";

/// The kinds of findings, in the order in which they are told.
const KINDS: [Kind; 5] = [
    Kind { code: ErrorCode::SenderInfoRequired, key: "violations" },
    Kind { code: ErrorCode::UnknownBankCode, key: "violations" },
    Kind { code: ErrorCode::RecipientUnresolvable, key: "unresolved" },
    Kind { code: ErrorCode::LimitViolation, key: "violations" },
    Kind { code: ErrorCode::FraudRuleBlocked, key: "violations" },
];

/// A kind of finding, and under which name its rows are told.
struct Kind {
    code: ErrorCode,
    key: &'static str,
}

/// What was found so far, by row.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings(Vec<(ErrorCode, usize, Value)>);

impl Findings {
    /// Takes in why a row is refused.
    ///
    /// # Errors
    /// The refusal of the whole batch, where it is nothing that is told by row.
    pub(super) fn take(
        &mut self,
        (index, row): (usize, &NewRow),
        problem: Problem,
    ) -> Result<(), Problem> {
        let code = problem.code();
        let detail = |name: &str| problem.particulars().map(|detail| detail[name].clone());
        let message = problem.message();
        let entry = match code {
            ErrorCode::SenderInfoRequired => {
                json!({ "row_index": index, "missing": detail("missing") })
            }
            ErrorCode::UnknownBankCode => json!({
                "row_index": index,
                "field": problem.about().map(|field| row.name_of(field)),
                "input": problem.about().and_then(|field| row.payout.sent_as(field)),
                "message": message,
            }),
            ErrorCode::RecipientUnresolvable => {
                json!({ "row_index": index, "code": code.entry().code, "message": message })
            }
            ErrorCode::LimitViolation => {
                json!({ "row_index": index, "kind": detail("kind"), "message": message })
            }
            ErrorCode::FraudRuleBlocked => {
                let action = detail("action").filter(|action| !action.is_null());
                let hits = detail("hits").unwrap_or_default();
                let labels = hits.as_array().into_iter().flatten().map(|hit| hit["label"].clone());
                let labels: Vec<Value> = labels.collect();
                let action = action.unwrap_or_else(|| json!("block"));
                json!({ "row_index": index, "action": action, "rule_labels": labels })
            }
            _ => return Err(of_row(index, row.in_its_words(problem))),
        };
        self.0.push((code, index, entry));
        Ok(())
    }

    /// Takes in a row that the fraud rules refuse, or hold.
    pub(super) fn ruled_out(&mut self, index: usize, ruling: &Ruling) {
        let verdict = &ruling.verdict;
        let entry = json!({
            "row_index": index,
            "action": verdict.action,
            "rule_labels": verdict.labels(),
        });
        self.0.push((ErrorCode::FraudRuleBlocked, index, entry));
    }

    /// The refusal of the batch, if anything was found: all rows of the first kind.
    pub(super) fn refusal(&self) -> Option<Problem> {
        let first = |kind: &&Kind| self.0.iter().any(|(code, ..)| *code == kind.code);
        let kind = KINDS.iter().find(first)?;
        let mut found: Vec<_> = self.0.iter().filter(|(code, ..)| *code == kind.code).collect();
        found.sort_by_key(|(_, index, _)| *index);
        let rows: Vec<&Value> = found.into_iter().map(|(.., entry)| entry).collect();
        let said = kind.code.texts().message.as_str();
        let message = match rows.len() {
            1 => format!("One row is refused: {said}"),
            n => format!("{n} rows are refused: {said}"),
        };
        let problem = Problem::because(kind.code, message).field(ITEMS);
        Some(problem.rows(kind.key, json!(rows)))
    }
}

/// What all changes of a batch's payouts come to, where none is refused. `ids` are the payouts', in
/// order.
///
/// # Errors
/// The first refusal, which names its payout.
pub(super) fn all_or_none<T>(
    decided: Vec<Result<Decided<T>, Problem>>,
    ids: &[String],
) -> Result<Effects, Problem> {
    let mut all = Effects::default();
    for (part, id) in decided.into_iter().zip(ids) {
        match part.map_err(|problem| of_payout(id, problem))? {
            Decided::Accept { effects, .. } => all.append(effects),
            Decided::Record { .. } => return Err(Problem::internal("a row was not changed")),
        }
    }
    Ok(all)
}

/// The refusal of a change of all payouts for what is wrong with one.
pub(super) fn of_payout(id: &str, problem: Problem) -> Problem {
    match problem.code() {
        ErrorCode::WalletFrozen => Problem::new(ErrorCode::BatchWalletFrozen),
        ErrorCode::LimitViolation => {
            let message = format!("payout {id}: {}", problem.message());
            let detail = problem.particulars().cloned().unwrap_or_default();
            Problem::because(ErrorCode::LimitViolation, message).detail(detail)
        }
        ErrorCode::BeneficiaryGloballyBlocked | ErrorCode::BeneficiaryBlacklistedForPayout => {
            Problem::because(problem.code(), format!("payout {id}: {}", problem.message()))
        }
        _ => problem,
    }
}

/// The refusal of a batch for what is wrong with one row.
pub(super) fn of_row(index: usize, problem: Problem) -> Problem {
    let code = match problem.code() {
        // The contract has codes of its own for what a row says.
        ErrorCode::InvalidField if problem.about() == Some("amount_minor") => {
            ErrorCode::InvalidAmount
        }
        ErrorCode::InvalidField | ErrorCode::RecipientFieldInvalid => ErrorCode::InvalidFormat,
        ErrorCode::RecipientFieldMissing => ErrorCode::MissingField,
        // It is the same wallet for all rows.
        ErrorCode::WalletFrozen => return Problem::new(ErrorCode::BatchWalletFrozen),
        ErrorCode::PayoutWalletNotFound => ErrorCode::WalletNotFound,
        // These say nothing about the row.
        ErrorCode::StateConflict | ErrorCode::ServiceUnavailable | ErrorCode::ApiError => {
            return problem;
        }
        code => code,
    };
    problem.with_code(code).of_item(ITEMS, index)
}
