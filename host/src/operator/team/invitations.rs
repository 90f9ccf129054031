//! Invitations: how somebody sets their password, at first and when they have lost it.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::approvals::{ApprovalView, Verdict};
use crate::caller::{Actor, Done, Stranger};
use crate::clock::Moment;
use crate::config::limits;
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::http::Body;
use crate::http::body::OptionalBody;
use crate::ledger::Command;
use crate::notifications::{self, Content, in_one_line};
use crate::team::password::refuse_weak;
use crate::team::sql::{self, MEMBER_CHANGES, Stored};
use crate::team::{Member, MemberStatus};

use super::super::{required, write};
use super::members::version;
use super::members::{InvitedMember, MemberView, Team, agree, find, require_power_over, state};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    (
        "invite_member_again",
        &[ErrorCode::NotFound, ErrorCode::StateConflict, ErrorCode::RecentLoginRequired],
    ),
    (
        "accept_invitation",
        &[
            ErrorCode::NotFound,
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::StateConflict,
            ErrorCode::ServiceOverloaded,
        ],
    ),
];

/// What an invitation's token begins with.
pub const TOKEN_PREFIX: &str = "rhi_";

/// With what somebody sets their password.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitationView {
    /// The token; shown now and never again. Hand it over by a way that nobody else reads. Where the
    /// host sends e-mail (`email.smtp_url`), it has been sent to the member's address, and only
    /// operators are shown it.
    pub token: Option<String>,
    /// Where it is taken up.
    #[schema(example = "http://127.0.0.1:8080/admin/v1/invitations/accept")]
    pub accept_url: String,
    /// Until when it is good.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Moment>,
}

impl InvitationView {
    /// The invitation of somebody, as it is shown once.
    #[must_use]
    pub fn of(app: &App, actor: &Actor, (token, stored): (String, &Stored)) -> Self {
        // Whoever can read it can be the member.
        let is_shown = actor.session.is_none() || app.post.mailer.is_none();
        let token = is_shown.then_some(token);
        let accept_url = format!("{}/admin/v1/invitations/accept", app.config.operators_url());
        Self { token, accept_url, expires_at: stored.invitation.as_ref().map(|(_, at)| *at) }
    }
}

/// A new invitation: its token, and what is kept of it.
pub(super) fn invitation(app: &App) -> (String, (String, Moment)) {
    let token = format!("{TOKEN_PREFIX}{}", app.ids.secret());
    let hash = app.keyring.hash_api_key(&token);
    (token, (hash, app.now().after(limits::INVITATION_VALID)))
}

/// The letter that brings somebody their invitation, where the host can write letters.
pub(super) async fn mailed(
    app: &App,
    (stored, token): (&Stored, &str),
) -> Result<Option<RowChange>, Problem> {
    if app.post.mailer.is_none() {
        return Ok(None);
    }
    let Member { id, merchant_id, email, .. } = &stored.member;
    let merchant = app
        .directory
        .merchant(merchant_id)
        .await?
        .ok_or_else(|| Problem::internal("its merchant is gone"))?;
    let team = in_one_line(&merchant.name);
    let until = stored.invitation.as_ref().map(|(_, at)| at.shown_in(&merchant.timezone));
    let until = until.unwrap_or_default();
    // Nothing that whoever invites could write: it comes from this host's address, to anybody.
    let text = format!(
        "Hello,\n\nyou are invited to the team of {team}. To set your password, give this \
         token:\n\n{token}\n\nIt is good until {until}, once. Whoever has it can set your password: \
         do not pass it on. On the command line:\n\nrailhead team accept {token} --url {}\n\nIf \
         you expected no invitation, leave it be.\n",
        app.config.operators_url()
    );
    let subject = format!("Your invitation to {team}");
    let content = Content::Email { to: email.clone(), subject, text };
    notifications::queued(app, ("invitation", id.as_str()), &content).map(Some)
}

/// How somebody is invited once more.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct InviteAgain {
    /// Whether they have lost their one-time codes, too.
    pub reset_otp: bool,
}

/// Invite a member again
///
/// For whoever has lost the invitation or the password. The old one counts no more, and their
/// sessions end.
#[utoipa::path(
    post, path = "/admin/v1/members/{id}/invite", operation_id = "invite_member_again", tag = "Team",
    params(("id" = String, Path, description = "The member")),
    request_body(content = Option<InviteAgain>),
    responses(
        (status = 200, description = "Invited", body = InvitedMember),
        (status = 202, description = "More people have to ask for the same", body = ApprovalView),
    ),
)]
pub async fn invite_again(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    OptionalBody(Body { value: body, .. }): OptionalBody<InviteAgain>,
) -> Result<Response, Problem> {
    let before = find(&app, &actor, &id).await?;
    require_power_over(&app, &actor, &before.member)?;
    if before.member.status == MemberStatus::Disabled {
        let message = "This member is disabled: make them active first.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    // Whoever takes somebody's codes away could be them from then on.
    if body.reset_otp && before.member.has_otp {
        actor.require_owner()?;
    }
    let team = Team::read(&app, &before.member.merchant_id).await?;
    let wanted = json!({ "email": before.member.email, "reset_otp": body.reset_otp });
    let about = ("member.reset", before.member.id.as_str());
    let agreement = match agree(&app, &actor, (&before.member, about), wanted).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let (token, invitation) = invitation(&app);
    let mut stored = Stored {
        member: Member { status: MemberStatus::Invited, ..changed(&app, &before.member) },
        password: None,
        invitation: Some(invitation),
        ..before.clone()
    };
    if body.reset_otp {
        stored.member.has_otp = false;
        (stored.otp_secret, stored.otp_pending, stored.recovery) = (None, None, Vec::new());
    }
    let mut after = state(&stored.member);
    after["reset_otp"] = json!(body.reset_otp);
    let done = Done {
        action: "member.reset",
        subject: ("member", stored.member.id.as_str()),
        before: Some(state(&before.member)),
        after: Some(agreement.told(after)),
    };
    let (mut rows, guards) = team.changed(MEMBER_CHANGES.change(&stored));
    rows.extend(agreement.rows);
    rows.extend(mailed(&app, (&stored, &token)).await?);
    let command = Command::rows(rows).guards(guards).guards([version(&before.member)]);
    write(&app, &actor, done, command.guards(agreement.guards)).await?;
    let view = InvitedMember {
        member: MemberView::of(&stored.member),
        invitation: InvitationView::of(&app, &actor, (token, &stored)),
    };
    Ok(Json(view).into_response())
}

/// A member after something that ends their sessions.
pub(super) fn changed(app: &App, before: &Member) -> Member {
    Member {
        generation: before.generation + 1,
        version: before.version + 1,
        updated_at: app.now(),
        ..before.clone()
    }
}

/// How an invitation is taken up.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AcceptInvitation {
    /// The invitation's token. Required.
    pub token: Option<String>,
    /// A password of 12 to 128 characters. Required.
    #[schema(example = "correct horse battery staple", min_length = 12, max_length = 128)]
    pub password: Option<String>,
}

/// Take up an invitation
///
/// Sets the password with which the member signs in. Needs no token in the header.
#[utoipa::path(
    post, path = "/admin/v1/invitations/accept", operation_id = "accept_invitation", tag = "Team",
    request_body = AcceptInvitation,
    responses((status = 200, description = "Active", body = MemberView)),
)]
pub async fn accept(
    State(app): State<App>,
    stranger: Stranger,
    body: Body<AcceptInvitation>,
) -> Result<Json<MemberView>, Problem> {
    let token = required("token", body.value.token)?;
    // A password is what it is, white space included.
    let password = body.value.password.unwrap_or_default();
    if password.is_empty() {
        let message = "password is required.";
        return Err(Problem::because(ErrorCode::MissingField, message).field("password"));
    }
    let before = find_invited(&app, &token).await?;
    refuse_weak(&password, &before.member.email)?;
    let team = Team::read(&app, &before.member.merchant_id).await?;
    let stored = Stored {
        member: Member { status: MemberStatus::Active, ..changed(&app, &before.member) },
        password: Some(app.team.passwords.hash(&app.ids, password).await?),
        invitation: None,
        ..before.clone()
    };
    let id = stored.member.id.as_str();
    let actor = Actor { name: id.to_owned(), address: stranger.address, session: None };
    let done = Done {
        action: "member.accept",
        subject: ("member", id),
        before: Some(state(&before.member)),
        after: Some(state(&stored.member)),
    };
    let (rows, guards) = team.changed(MEMBER_CHANGES.change(&stored));
    let command = Command::rows(rows).guards(guards).guards([version(&before.member)]);
    write(&app, &actor, done, command).await?;
    Ok(Json(MemberView::of(&stored.member)))
}

async fn find_invited(app: &App, token: &str) -> Result<Stored, Problem> {
    let missing = || {
        let message = "No such invitation, or it is no longer good: ask for another one.";
        Problem::because(ErrorCode::NotFound, message)
    };
    for hash in app.keyring.api_key_hashes(token) {
        let found = sql::find_invited(app.db.pool(), &hash).await?;
        let is_good = |stored: &Stored| {
            stored.member.status == MemberStatus::Invited
                && stored.invitation.as_ref().is_some_and(|(_, until)| *until > app.now())
        };
        if let Some(stored) = found.filter(is_good) {
            return Ok(stored);
        }
    }
    Err(missing())
}
