//! What takes more than one person: the first one asks, others ask for the very same, and whoever
//! completes their number has it carried out.
//!
//! There is one request at a time for each act on each subject: who asks for something else takes
//! the place of those before. The act itself removes the request, in its own transaction and only as
//! it was read, so that of two who agree at once one carries it out, and nobody's word counts twice.
//! How many it takes is said by whoever asks here: by the operator's policy (`approvals` in the
//! configuration), or by a merchant's settings for what its own team decides. Whoever ends what
//! others were asked about takes the requests away with it.

mod sql;
pub mod verify;
mod view;

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use sql::{find, list};
pub use view::{ApprovalView, ApprovalVote};

use crate::app::App;
use crate::auth::Permission;
use crate::caller::repeat::{answer, asked_once};
use crate::caller::{Actor, Done, OPERATOR};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::id::{ApprovalId, MemberId, MerchantId};
use crate::ledger::{Command, Effects, Guard, Reply, Reservation};
use crate::team::{self, Member, MemberStatus, Role};

use sql::{REQUEST_CHANGES, REQUESTS, TAKEN_AWAY, VERSIONS};

/// What may take more than one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// What operators do; how many it takes is their policy.
    OfOperators(ApprovalAct),
    /// A payout that waits for teammates of whoever made it.
    Payout,
    /// A batch that does.
    Batch,
}

impl Act {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OfOperators(act) => act.as_str(),
            Self::Payout => "payout",
            Self::Batch => "batch",
        }
    }

    /// Reads the word that [`Self::as_str`] writes.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "payout" => Some(Self::Payout),
            "batch" => Some(Self::Batch),
            word => word.parse().ok().map(Self::OfOperators),
        }
    }

    /// What a member of the merchant's team needs to have a say; nothing where operators decide
    /// among themselves.
    #[must_use]
    pub const fn permission(self) -> Option<Permission> {
        match self {
            Self::Payout => Some(Permission::PayoutApprove),
            Self::Batch => Some(Permission::PayoutBulkApprove),
            Self::OfOperators(ApprovalAct::Key) => Some(Permission::KeyManage),
            Self::OfOperators(ApprovalAct::Limits) => Some(Permission::SettingsManage),
            Self::OfOperators(ApprovalAct::Member) => Some(Permission::MemberManage),
            Self::OfOperators(_) => None,
        }
    }
}

/// What somebody asks for.
pub struct Asked<'a> {
    /// What kind of act it is.
    pub act: Act,
    /// What the audit log calls it.
    pub action: &'static str,
    /// The kind and the id of what it is done to.
    pub subject: (&'static str, &'a str),
    /// Whose it is, where a merchant's own people may see the request and agree.
    pub merchant: Option<&'a MerchantId>,
    /// How many have to ask for it; one is enough to have it carried out at once.
    pub people: u32,
    /// For how long those who asked are counted.
    pub valid_for: Duration,
    /// What others have to ask for as well: not the reasons, which are each one's own.
    pub wanted: Value,
    /// Why, in the words of the one who asks; the audit log keeps them.
    pub said: Value,
    /// The idempotency key of the call: a repeat is answered as it was.
    pub once: Option<Reservation>,
}

impl<'a> Asked<'a> {
    /// An act of operators, that takes as many as the policy says.
    #[must_use]
    pub fn by_policy(
        app: &App,
        (act, amount): (ApprovalAct, Option<(&str, i64)>),
        (action, subject): (&'static str, (&'static str, &'a str)),
    ) -> Self {
        Self {
            act: Act::OfOperators(act),
            action,
            subject,
            merchant: None,
            people: app.config.approvals.people(act, amount),
            valid_for: limits::APPROVAL_VALID,
            wanted: Value::Null,
            said: Value::Null,
            once: None,
        }
    }

    /// The same, where others have to ask for this as well.
    #[must_use]
    pub fn wanting(self, wanted: Value) -> Self {
        Self { wanted, ..self }
    }

    /// The same, in the words of whoever asks, under the idempotency key of the call.
    #[must_use]
    pub fn saying(self, said: Value, once: Option<Reservation>) -> Self {
        Self { said, once, ..self }
    }

    /// The same, where a merchant's own people may agree.
    #[must_use]
    pub fn of(self, merchant: &'a MerchantId) -> Self {
        Self { merchant: Some(merchant), ..self }
    }
}

/// Whether it may be done now.
pub enum Verdict {
    /// It may; this goes with it.
    Go(Agreement),
    /// Others have to ask for the same; this is the answer.
    Wait(Response),
}

/// What goes with an act that enough have asked for; nothing, where one is enough.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    /// Rows of the same transaction.
    pub rows: Vec<RowChange>,
    /// What must be as it was.
    pub guards: Vec<Guard>,
    /// Who asked before, the first one first.
    pub others: Vec<Vote>,
    /// How many it takes.
    pub people: u32,
}

impl Agreement {
    /// Who asked first, where it took more than one.
    #[must_use]
    pub fn first(&self) -> Option<&str> {
        self.others.first().map(|vote| vote.by.as_str())
    }

    /// Everybody who approved a payment, with what each was, and how many it took: what `verify`
    /// holds an approval to.
    #[must_use]
    pub fn approved_by(&self, actor: &Actor, now: Moment) -> Value {
        let last = Vote::of(actor, now);
        let by = |vote: &Vote| json!({ "by": vote.by, "role": vote.role });
        let all: Vec<Value> = self.others.iter().chain([&last]).map(by).collect();
        json!({ "people": all, "needed": self.people.max(1) })
    }

    /// What the audit log says about the act, with who asked for it before.
    #[must_use]
    pub fn told(&self, mut after: Value) -> Value {
        if let Some(first) = self.first() {
            after["requested_by"] = json!(first);
        }
        if self.others.len() > 1 {
            let also: Vec<&str> = self.others[1..].iter().map(|vote| vote.by.as_str()).collect();
            after["also_asked"] = json!(also);
        }
        after
    }
}

/// Somebody who asked, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// An operator's name, or a member's id.
    pub by: String,
    /// What a member was then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// When, in microseconds.
    pub at: i64,
}

impl Vote {
    /// That somebody asks now.
    #[must_use]
    pub fn of(actor: &Actor, now: Moment) -> Self {
        let role = actor.member().map(|member| member.role);
        Self { by: actor.name.clone(), role, at: now.micros() }
    }
}

/// A request as it is kept.
#[derive(Clone, Debug)]
pub struct Request {
    /// The act and its subject in one.
    pub place: String,
    /// Never twice the same.
    pub version: i64,
    /// The request's id.
    pub id: ApprovalId,
    /// What the policy calls it.
    pub act: String,
    /// What the audit log calls it.
    pub action: String,
    /// To which object.
    pub subject_id: String,
    /// Whose people may agree besides operators.
    pub merchant_id: Option<MerchantId>,
    /// What is asked for, as JSON.
    pub wanted: String,
    /// How many it takes.
    pub people: u32,
    /// Who asked, the first one first.
    pub votes: Vec<Vote>,
    /// When the first one did.
    pub created_at: Moment,
    /// Until when others may.
    pub expires_at: Moment,
}

/// Whether somebody may do this now: one is enough, or enough others have asked for the same.
/// Otherwise the request is written down.
///
/// # Errors
/// `state_conflict` where somebody else asked at the same moment; the database cannot be read or
/// written.
pub async fn agree(app: &App, actor: &Actor, asked: Asked<'_>) -> Result<Verdict, Problem> {
    let people = asked.people;
    let now = app.now();
    let place = place(asked.action, asked.subject.1);
    let known = sql::get(app.db.pool(), &place).await?;
    let wanted = asked.wanted.to_string();
    if people <= 1 {
        // It took more when somebody asked for it. Nobody's word is needed, so none is guarded.
        let same = known.filter(|it| it.wanted == wanted);
        let rows = same.map(|same| TAKEN_AWAY.of(same.place)).into_iter().collect();
        return Ok(Verdict::Go(Agreement { rows, people, ..Agreement::default() }));
    }
    let same = known.as_ref().filter(|it| it.expires_at > now && it.wanted == wanted);
    let votes = same.map_or(&[][..], |same| &same.votes);
    let (mut votes, mut guards) = standing(app, votes, (asked.act, asked.merchant)).await?;
    let others: Vec<&Vote> = votes.iter().filter(|vote| vote.by != actor.name).collect();
    let needed = usize::try_from(people).unwrap_or(usize::MAX);
    if let Some(same) = same
        && others.len() + 1 >= needed
    {
        guards.push(guard(same));
        let others = others.into_iter().cloned().collect();
        let rows = vec![TAKEN_AWAY.of(place)];
        return Ok(Verdict::Go(Agreement { rows, guards, others, people }));
    }
    if others.len() == votes.len() {
        votes.push(Vote::of(actor, now));
    }
    let request = Request {
        place,
        version: i64::from_le_bytes(app.ids.bytes()),
        id: same.map_or_else(|| app.ids.id(), |same| same.id.clone()),
        act: asked.act.as_str().to_owned(),
        action: asked.action.to_owned(),
        subject_id: asked.subject.1.to_owned(),
        merchant_id: asked.merchant.cloned(),
        wanted,
        people,
        votes,
        created_at: same.map_or(now, |same| same.created_at),
        expires_at: same.map_or_else(|| now.after(asked.valid_for), |same| same.expires_at),
    };
    write_down(app, actor, asked, (request, known)).await.map(Verdict::Wait)
}

/// Where what is asked for is kept: the act and its subject in one.
fn place(action: &str, subject: &str) -> String {
    format!("{action}/{subject}")
}

/// Those whose word still counts, and what must stay so: an operator who is one no more, or a member
/// who has left or may not do this any more, has not agreed.
async fn standing(
    app: &App,
    votes: &[Vote],
    (act, merchant): (Act, Option<&MerchantId>),
) -> Result<(Vec<Vote>, Vec<Guard>), Problem> {
    let (mut standing, mut guards) = (Vec::new(), Vec::new());
    for vote in votes {
        let Some(id) = MemberId::parse(&vote.by) else {
            if is_operator(app, &vote.by) {
                standing.push(vote.clone());
            }
            continue;
        };
        let member = team::sql::get_member(app.db.pool(), &id).await?.map(|stored| stored.member);
        // What somebody may do on their own changes with what they are.
        let may = |member: &Member| {
            merchant == Some(&member.merchant_id)
                && vote.role == Some(member.role)
                && member.status == MemberStatus::Active
                && act.permission().is_some_and(|needed| member.may(needed))
        };
        if let Some(member) = member.filter(may) {
            let (on, id) = (&team::sql::MEMBER_VERSIONS, member.id.to_string());
            guards.push(Guard { on, id, version: member.version });
            standing.push(vote.clone());
        }
    }
    Ok((standing, guards))
}

fn is_operator(app: &App, name: &str) -> bool {
    name == OPERATOR || app.config.admin.operators.contains_key(name)
}

/// Writes down who has asked, in the place of whoever asked for something else.
async fn write_down(
    app: &App,
    actor: &Actor,
    asked: Asked<'_>,
    (request, known): (Request, Option<Request>),
) -> Result<Response, Problem> {
    let seen = known.map(|known| known.version);
    let done = Done {
        action: "approval.request",
        subject: asked.subject,
        before: None,
        after: Some(json!({
            "action": asked.action,
            "wanted": asked.wanted,
            "said": asked.said,
            "people": { "asked": request.votes.len(), "needed": request.people },
        })),
    };
    let line = actor.did(done).row(&app.ids, app.now());
    let row = match seen {
        Some(_) => REQUEST_CHANGES.change(&request),
        None => REQUESTS.insert(&request),
    };
    let at = request.place.clone();
    // Of two who ask at once, one is refused and looks again.
    let command = Command::new(move |locked| {
        let held = locked.row(&VERSIONS, &at).map(|row| row.int("version")).transpose()?;
        match held == seen {
            true => Ok(Effects { rows: vec![row.clone()], ..Effects::default() }.and(())),
            false => Err(Problem::new(ErrorCode::StateConflict)),
        }
    });
    let place = request.place.clone();
    let reply = Reply {
        status: StatusCode::ACCEPTED.as_u16(),
        body: serde_json::to_string(&ApprovalView::of(request)).map_err(Problem::internal)?,
    };
    let reply = move |(): &()| reply.clone();
    let command = command.row(&VERSIONS, place).and_rows(vec![line]);
    let command =
        command.reserve(asked.once.map(|once| asked_once(actor, &once))).replying(reply.clone());
    answer(app.writer.work(command).await?, reply)
}

/// The request must be as it was read.
fn guard(request: &Request) -> Guard {
    Guard { on: &VERSIONS, id: request.place.clone(), version: request.version }
}

/// Refuses a member who has no say about a request. Whoever asked may always take it back.
///
/// # Errors
/// `permission_denied`.
pub fn require_say(actor: &Actor, request: &Request) -> Result<(), Problem> {
    if request.votes.iter().any(|vote| vote.by == actor.name) {
        return Ok(());
    }
    match Act::parse(&request.act).and_then(Act::permission) {
        Some(permission) => actor.require(permission),
        None if actor.session.is_none() => Ok(()),
        None => Err(Problem::new(ErrorCode::PermissionDenied)),
    }
}

/// Also takes away whatever of these acts on this subject somebody has asked for. Requests are
/// locked in the order in which acts lock them, so that the two do not wait for each other.
#[must_use]
pub fn ending<T: 'static>(command: Command<T>, actions: &[&str], subject: &str) -> Command<T> {
    let places: Vec<String> = actions.iter().map(|action| place(action, subject)).collect();
    let gone = places.iter().map(|place| TAKEN_AWAY.of(place.as_str())).collect();
    let command = command.and_rows(gone);
    places.into_iter().fold(command, |command, place| command.row(&VERSIONS, place))
}

/// Takes a request away: nobody's word counts any more.
#[must_use]
pub fn taken_away(request: &Request) -> (RowChange, Guard) {
    (TAKEN_AWAY.of(request.place.clone()), guard(request))
}
