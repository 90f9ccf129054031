//! Members: invited, listed, given more or less to do, removed.
//!
//! Nobody hands out what they have not, touches whoever may do more, or changes what they may do
//! themselves. Whoever changes a team has seen all of it: of two changes at once one is refused.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::approvals::{self, ApprovalView, Asked, Verdict};
use crate::auth::Permission;
use crate::caller::{Actor, Done};
use crate::clock::Moment;
use crate::config::{ApprovalAct, limits};
use crate::db::bulk::RowChange;
use crate::error::{ErrorCode, Problem};
use crate::http::texts::{EMAIL, NAME};
use crate::http::{Body, Page};
use crate::id::{MemberId, MerchantId};
use crate::ledger::{Command, Guard};
use crate::team::member::OWNERS_MAX;
use crate::team::sql::{self, MEMBER_CHANGES, MEMBER_VERSIONS, MEMBERS, Stored, TeamVersion};
use crate::team::{Member, MemberStatus, Role};

use super::super::merchants;
use super::super::{invalid, required, write};
use super::invitations::{InvitationView, invitation, mailed};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("create_member", CHANGE_ERRORS),
    ("list_members", &[ErrorCode::NotFound]),
    ("retrieve_member", &[ErrorCode::NotFound]),
    ("update_member", CHANGE_ERRORS),
    (
        "remove_member",
        &[ErrorCode::NotFound, ErrorCode::StateConflict, ErrorCode::RecentLoginRequired],
    ),
];

const CHANGE_ERRORS: &[ErrorCode] = &[
    ErrorCode::NotFound,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::StateConflict,
    ErrorCode::RecentLoginRequired,
];

/// A member of a merchant's team.
#[derive(Debug, Serialize, ToSchema)]
pub struct MemberView {
    /// Always `member`.
    #[schema(example = "member")]
    pub object: &'static str,
    /// The member's id, by which the audit log calls them.
    #[schema(example = "mem_0q8zj3vkw1d7c5m2x9s4b6ne")]
    pub id: String,
    /// Whose team it is.
    pub merchant_id: String,
    /// With what they sign in.
    pub email: String,
    /// For people.
    pub name: String,
    /// What they are to the merchant.
    pub role: Role,
    /// Permissions besides those of the role.
    pub permissions: Vec<Permission>,
    /// Everything that they may do.
    pub may: Vec<Permission>,
    /// Whether they may sign in.
    pub status: MemberStatus,
    /// Whether they have set up one-time codes.
    pub has_otp: bool,
    /// Who invited them.
    pub created_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
    /// When they last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Moment,
}

/// A member, with the invitation that is shown once.
#[derive(Debug, Serialize, ToSchema)]
pub struct InvitedMember {
    /// The member.
    #[serde(flatten)]
    pub member: MemberView,
    /// With what they set their password.
    pub invitation: InvitationView,
}

impl MemberView {
    /// A member, as they are shown.
    #[must_use]
    pub fn of(member: &Member) -> Self {
        Self {
            object: "member",
            id: member.id.to_string(),
            merchant_id: member.merchant_id.to_string(),
            email: member.email.clone(),
            name: member.name.clone(),
            role: member.role,
            permissions: member.permissions.clone(),
            may: member.all_permissions(),
            status: member.status,
            has_otp: member.has_otp,
            created_by: member.created_by.clone(),
            created_at: member.created_at,
            updated_at: member.updated_at,
        }
    }
}

/// Somebody to be invited.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CreateMember {
    /// With what they will sign in. Required.
    #[schema(example = "ada@acme.example")]
    pub email: Option<String>,
    /// For people. Required.
    #[schema(example = "Ada Obi")]
    pub name: Option<String>,
    /// What they are to the merchant. Required.
    #[schema(value_type = Option<Role>)]
    pub role: Option<Role>,
    /// Permissions besides those of the role.
    pub permissions: Vec<Permission>,
}

/// Invite a member
///
/// The answer has the invitation's token, once: whoever has it sets the password. It is good for
/// three days. A team has three owners at most.
#[utoipa::path(
    post, path = "/admin/v1/merchants/{id}/members", operation_id = "create_member", tag = "Team",
    params(("id" = String, Path, description = "The merchant")),
    request_body = CreateMember,
    responses(
        (status = 201, description = "Invited", body = InvitedMember),
        (status = 202, description = "More people have to ask for the same", body = ApprovalView),
    ),
)]
pub async fn create(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    body: Body<CreateMember>,
) -> Result<Response, Problem> {
    actor.require(Permission::MemberManage)?;
    let merchant = merchants::find_for(&app, &actor, &id).await?;
    actor.require_recent(app.now())?;
    let member = understand(&app, (&actor, &merchant.id), body.value)?;
    refuse_more(&actor, &member)?;
    let team = Team::read(&app, &merchant.id).await?;
    team.refuse_full(&member)?;
    let about = ("member.invite", member.email.as_str());
    let agreement = match agree(&app, &actor, (&member, about), state(&member)).await? {
        Verdict::Go(agreement) => agreement,
        Verdict::Wait(response) => return Ok(response),
    };
    let (token, invitation) = invitation(&app);
    let stored = Stored {
        member: member.clone(),
        password: None,
        otp_secret: None,
        otp_pending: None,
        otp_step: 0,
        recovery: Vec::new(),
        invitation: Some(invitation),
    };
    let done = Done {
        action: "member.invite",
        subject: ("member", member.id.as_str()),
        before: None,
        after: Some(agreement.told(state(&member))),
    };
    let (mut rows, guards) = team.changed(MEMBERS.insert(&stored));
    rows.extend(agreement.rows);
    rows.extend(mailed(&app, (&stored, &token)).await?);
    let command = Command::rows(rows).guards(guards).guards(agreement.guards);
    write(&app, &actor, done, command).await?;
    let view = InvitedMember {
        member: MemberView::of(&member),
        invitation: InvitationView::of(&app, &actor, (token, &stored)),
    };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

fn understand(
    app: &App,
    (actor, merchant): (&Actor, &MerchantId),
    body: CreateMember,
) -> Result<Member, Problem> {
    let email = required("email", body.email)?.to_lowercase();
    EMAIL.check("email", Some(&email))?;
    let name = required("name", body.name)?;
    NAME.check("name", Some(&name))?;
    let role = body.role.ok_or_else(|| {
        Problem::because(ErrorCode::MissingField, "role is required.").field("role")
    })?;
    Ok(Member {
        id: app.ids.id(),
        merchant_id: merchant.clone(),
        email,
        name,
        role,
        permissions: besides(role, body.permissions),
        status: MemberStatus::Invited,
        has_otp: false,
        generation: 1,
        version: 1,
        created_by: actor.name.clone(),
        created_at: app.now(),
        updated_at: app.now(),
    })
}

/// Permissions that a role has not, each once.
fn besides(role: Role, permissions: Vec<Permission>) -> Vec<Permission> {
    let mut besides = Vec::new();
    for permission in permissions {
        if !role.permissions().contains(&permission) && !besides.contains(&permission) {
            besides.push(permission);
        }
    }
    besides
}

/// List a merchant's members
#[utoipa::path(
    get, path = "/admin/v1/merchants/{id}/members", operation_id = "list_members", tag = "Team",
    params(("id" = String, Path, description = "The merchant")),
    responses((status = 200, description = "Newest first, all of them", body = inline(Page<MemberView>))),
)]
pub async fn list(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Page<MemberView>, Problem> {
    let merchant = merchants::find_for(&app, &actor, &id).await?;
    let team = sql::list_team(app.db.pool(), &merchant.id).await?;
    let views = team.iter().map(|stored| MemberView::of(&stored.member)).collect();
    Ok(Page::of(views, i64::try_from(limits::MEMBERS_MAX).unwrap_or(i64::MAX)))
}

/// Retrieve a member
#[utoipa::path(
    get, path = "/admin/v1/members/{id}", operation_id = "retrieve_member", tag = "Team",
    params(("id" = String, Path, description = "The member, or `current`")),
    responses((status = 200, description = "The member", body = MemberView)),
)]
pub async fn retrieve(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<MemberView>, Problem> {
    Ok(Json(MemberView::of(&find(&app, &actor, &id).await?.member)))
}

/// What is to become of a member.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UpdateMember {
    /// For people.
    pub name: Option<String>,
    /// What they are to the merchant.
    pub role: Option<Role>,
    /// Permissions besides those of the role, in place of those before.
    pub permissions: Option<Vec<Permission>>,
    /// `active` or `disabled`. Who has set no password becomes `invited` instead of `active`.
    pub status: Option<MemberStatus>,
}

/// Change a member
///
/// A change of what they may do, or of whether they may sign in, ends their sessions. Members change
/// nothing about themselves but their name.
#[utoipa::path(
    patch, path = "/admin/v1/members/{id}", operation_id = "update_member", tag = "Team",
    params(("id" = String, Path, description = "The member, or `current`")),
    request_body = UpdateMember,
    responses(
        (status = 200, description = "The member, changed", body = MemberView),
        (status = 202, description = "More people have to ask for the same", body = ApprovalView),
    ),
)]
pub async fn update(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
    body: Body<UpdateMember>,
) -> Result<Response, Problem> {
    let before = find(&app, &actor, &id).await?;
    if actor.name != before.member.id.as_str() {
        require_power_over(&app, &actor, &before.member)?;
    }
    let after = changed(&app, &before, body.value)?;
    let is_about_standing = after.generation != before.member.generation;
    if !is_about_standing && after.name == before.member.name {
        return Ok(Json(MemberView::of(&before.member)).into_response());
    }
    let team = Team::read(&app, &after.merchant_id).await?;
    let mut agreement = approvals::Agreement::default();
    if is_about_standing {
        require_power_over(&app, &actor, &before.member)?;
        refuse_more(&actor, &after)?;
        team.refuse_full(&after)?;
        team.refuse_last_owner(&actor, &after)?;
        if has_more(&before.member, &after) {
            let about = ("member.update", after.id.as_str());
            agreement = match agree(&app, &actor, (&after, about), state(&after)).await? {
                Verdict::Go(agreement) => agreement,
                Verdict::Wait(response) => return Ok(response),
            };
        }
    }
    let done = Done {
        action: "member.update",
        subject: ("member", after.id.as_str()),
        before: Some(state(&before.member)),
        after: Some(agreement.told(state(&after))),
    };
    let as_read = version(&before.member);
    let stored = Stored { member: after.clone(), ..before };
    let (mut rows, guards) = team.changed(MEMBER_CHANGES.change(&stored));
    rows.extend(agreement.rows);
    let command = Command::rows(rows).guards(guards).guards([as_read]).guards(agreement.guards);
    write(&app, &actor, done, command).await?;
    Ok(Json(MemberView::of(&after)).into_response())
}

fn changed(app: &App, stored: &Stored, body: UpdateMember) -> Result<Member, Problem> {
    let before = &stored.member;
    let mut after = before.clone();
    if let Some(name) = body.name {
        after.name = required("name", Some(name))?;
        NAME.check("name", Some(&after.name))?;
    }
    after.role = body.role.unwrap_or(before.role);
    let permissions = body.permissions.unwrap_or_else(|| before.permissions.clone());
    after.permissions = besides(after.role, permissions);
    after.status = match (body.status, before.status) {
        (None, status) => status,
        (Some(MemberStatus::Disabled), _) => MemberStatus::Disabled,
        (Some(MemberStatus::Active), MemberStatus::Active) => MemberStatus::Active,
        (Some(MemberStatus::Active), MemberStatus::Disabled) => match stored.password {
            Some(_) => MemberStatus::Active,
            // Who has set no password is back where they were: their invitation counts again.
            None => MemberStatus::Invited,
        },
        (Some(MemberStatus::Active), _) => {
            let message = "They become active by taking up their invitation.";
            return Err(Problem::because(ErrorCode::StateConflict, message).field("status"));
        }
        (Some(_), _) => return Err(invalid("status", "must be active or disabled")),
    };
    after.version += 1;
    after.updated_at = app.now();
    let standing = |member: &Member| (member.role, member.permissions.clone(), member.status);
    if standing(before) != standing(&after) {
        after.generation += 1;
    }
    Ok(after)
}

/// Remove a member
///
/// They cannot sign in any more, and their approvals of what still waits do not count. What they did
/// stays on record; keys that they made go on working until somebody revokes them.
#[utoipa::path(
    delete, path = "/admin/v1/members/{id}", operation_id = "remove_member", tag = "Team",
    params(("id" = String, Path, description = "The member")),
    responses((status = 200, description = "The member, removed", body = MemberView)),
)]
pub async fn remove(
    State(app): State<App>,
    actor: Actor,
    Path(id): Path<String>,
) -> Result<Json<MemberView>, Problem> {
    let before = find(&app, &actor, &id).await?;
    require_power_over(&app, &actor, &before.member)?;
    let team = Team::read(&app, &before.member.merchant_id).await?;
    let after = Member {
        status: MemberStatus::Removed,
        has_otp: false,
        generation: before.member.generation + 1,
        version: before.member.version + 1,
        updated_at: app.now(),
        ..before.member.clone()
    };
    team.refuse_last_owner(&actor, &after)?;
    let done = Done {
        action: "member.remove",
        subject: ("member", after.id.as_str()),
        before: Some(state(&before.member)),
        after: Some(state(&after)),
    };
    let as_read = version(&before.member);
    let stored = Stored {
        member: after.clone(),
        password: None,
        otp_secret: None,
        otp_pending: None,
        recovery: Vec::new(),
        invitation: None,
        ..before
    };
    let (rows, guards) = team.changed(MEMBER_CHANGES.change(&stored));
    write(&app, &actor, done, Command::rows(rows).guards(guards).guards([as_read])).await?;
    Ok(Json(MemberView::of(&after)))
}

/// What a member may do, and whether they may sign in, for the audit log.
pub(super) fn state(member: &Member) -> Value {
    json!({
        "email": member.email,
        "name": member.name,
        "role": member.role,
        "permissions": member.permissions,
        "status": member.status,
    })
}

/// The member must be as they were read.
pub(super) fn version(member: &Member) -> Guard {
    Guard { on: &MEMBER_VERSIONS, id: member.id.to_string(), version: member.version }
}

/// A member, if they are theirs to see; `current` is whoever asks.
pub(super) async fn find(app: &App, actor: &Actor, id: &str) -> Result<Stored, Problem> {
    let missing = || Problem::because(ErrorCode::NotFound, "No such member.");
    let id = match (id, actor.member()) {
        ("current", Some(member)) => member.id.clone(),
        (id, _) => MemberId::parse(id).ok_or_else(missing)?,
    };
    let found = sql::get_member(app.db.pool(), &id).await?;
    let is_there = |stored: &Stored| {
        actor.sees(&stored.member.merchant_id) && stored.member.status != MemberStatus::Removed
    };
    found.filter(is_there).ok_or_else(missing)
}

/// Refuses whoever has no power over a member: without the permission, not sure to be who they are,
/// about themselves, or about somebody who may do more.
pub(super) fn require_power_over(app: &App, actor: &Actor, member: &Member) -> Result<(), Problem> {
    actor.require(Permission::MemberManage)?;
    actor.require_recent(app.now())?;
    if actor.name == member.id.as_str() {
        let message = "Nobody changes what they may do themselves: ask another member.";
        return Err(Problem::because(ErrorCode::PermissionDenied, message));
    }
    refuse_more(actor, member)
}

/// Refuses a member who deals with somebody who may do what they may not.
fn refuse_more(actor: &Actor, other: &Member) -> Result<(), Problem> {
    let Some(own) = actor.member() else { return Ok(()) };
    if other.role == Role::Owner && own.role != Role::Owner {
        let message = "Only an owner, or the operator, makes and changes owners.";
        return Err(Problem::because(ErrorCode::PermissionDenied, message));
    }
    match other.all_permissions().into_iter().find(|permission| !own.may(*permission)) {
        None => Ok(()),
        Some(permission) => Err(permission.missing_of_member()),
    }
}

/// Whether a member may do anything now that they could not before.
fn has_more(before: &Member, after: &Member) -> bool {
    let is_back = before.status == MemberStatus::Disabled && after.status != MemberStatus::Disabled;
    let is_owner_now = before.role != Role::Owner && after.role == Role::Owner;
    is_back || is_owner_now || after.all_permissions().iter().any(|it| !before.may(*it))
}

/// Whether one person is enough for a member who may do more, or this completes their number.
pub(super) async fn agree(
    app: &App,
    actor: &Actor,
    (member, (action, subject)): (&Member, (&'static str, &str)),
    wanted: Value,
) -> Result<Verdict, Problem> {
    // Of two teams, each has its own.
    let subject = format!("{}/{subject}", member.merchant_id);
    let done = (action, ("member", subject.as_str()));
    let asked = Asked::by_policy(app, (ApprovalAct::Member, None), done);
    approvals::agree(app, actor, asked.of(&member.merchant_id).wanting(wanted)).await
}

/// A team as it was read.
pub(super) struct Team {
    version: TeamVersion,
    members: Vec<Member>,
}

impl Team {
    /// Reads a team.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(super) async fn read(app: &App, merchant: &MerchantId) -> Result<Self, Problem> {
        // Its number first: what is read after that is no older.
        let version = sql::get_team_version(app.db.pool(), merchant).await?;
        let members = sql::list_team(app.db.pool(), merchant).await?;
        let version = TeamVersion { id: merchant.clone(), version };
        Ok(Self { version, members: members.into_iter().map(|it| it.member).collect() })
    }

    /// A change of one of its members, with what must be as it was.
    pub(super) fn changed(&self, row: RowChange) -> (Vec<RowChange>, [Guard; 1]) {
        let TeamVersion { id, version } = &self.version;
        let next = TeamVersion { id: id.clone(), version: version + 1 };
        let on = &sql::TEAM_VERSIONS;
        let as_read = Guard { on, id: id.to_string(), version: *version };
        (vec![row, sql::TEAM_CHANGES.change(&next)], [as_read])
    }

    /// Refuses somebody for whom there is no place: the address is taken, the team is as large as it
    /// may be, or has its owners.
    fn refuse_full(&self, member: &Member) -> Result<(), Problem> {
        let conflict = |message: String, field: &str| {
            Err(Problem::because(ErrorCode::StateConflict, message).field(field))
        };
        let mut others = self.members.iter().filter(|other| other.id != member.id);
        if others.clone().any(|other| other.email == member.email) {
            return conflict("Somebody of this team has this address.".to_owned(), "email");
        }
        if others.clone().count() >= limits::MEMBERS_MAX {
            let most = limits::MEMBERS_MAX;
            return conflict(format!("A team has {most} members at most."), "email");
        }
        if member.is_owner()
            && others.by_ref().filter(|other| other.is_owner()).count() >= OWNERS_MAX
        {
            return conflict(format!("A merchant has {OWNERS_MAX} owners at most."), "role");
        }
        Ok(())
    }

    /// Refuses a member who would leave the account without an owner.
    fn refuse_last_owner(&self, actor: &Actor, member: &Member) -> Result<(), Problem> {
        let is_active = |it: &Member| it.role == Role::Owner && it.status == MemberStatus::Active;
        let was = self.members.iter().any(|known| known.id == member.id && is_active(known));
        let others = self.members.iter().any(|known| known.id != member.id && is_active(known));
        if actor.session.is_some() && was && !is_active(member) && !others {
            let message = "This is the last owner: make somebody else one first.";
            return Err(Problem::because(ErrorCode::StateConflict, message));
        }
        Ok(())
    }
}
