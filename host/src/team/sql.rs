//! Statements about members and their sessions.

use std::net::IpAddr;

use sqlx::any::AnyRow;
use sqlx::{AnyPool, Row as _};

use crate::auth::Permission;
use crate::clock::Moment;
use crate::db::bulk::{Table, Update, int, text};
use crate::db::cell::Kind::Int;
use crate::db::lookup::Lookup;
use crate::id::{Id as _, MemberId, MerchantId, SessionId};

use super::member::{Member, MemberStatus, Role};
use super::session::{Session, SignedIn};

/// A member as they are kept, secrets included.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The member.
    pub member: Member,
    /// The hash of the password; none before the invitation is accepted.
    pub password: Option<String>,
    /// The secret of their one-time codes, sealed.
    pub otp_secret: Option<String>,
    /// The secret of codes that they have not confirmed yet, sealed.
    pub otp_pending: Option<String>,
    /// The step of the last code that was used.
    pub otp_step: i64,
    /// What is kept of the codes for whoever has lost theirs.
    pub recovery: Vec<String>,
    /// The keyed hash of an invitation's token, and until when it counts.
    pub invitation: Option<(String, Moment)>,
}

impl Stored {
    /// What the secrets of their codes are sealed for.
    #[must_use]
    pub fn place(&self) -> String {
        format!("members/otp/{}", self.member.id)
    }
}

/// New members.
pub static MEMBERS: Table<Stored> = Table {
    name: "members",
    fixed: &[
        text("id", |stored| stored.member.id.as_str().into()),
        text("merchant_id", |stored| stored.member.merchant_id.as_str().into()),
        text("email", |stored| (&stored.member.email).into()),
        text("created_by", |stored| (&stored.member.created_by).into()),
        int("created_at", |stored| stored.member.created_at.into()),
    ],
    changing: MEMBER_CHANGES.columns,
    on_conflict: None,
    is_sealed: true,
};

/// Changes of members.
pub static MEMBER_CHANGES: Update<Stored> = Update {
    name: "members",
    key: text("id", |stored| stored.member.id.as_str().into()),
    columns: &[
        text("name", |stored| (&stored.member.name).into()),
        text("role", |stored| stored.member.role.as_str().into()),
        text("permissions", |stored| json(&stored.member.permissions).into()),
        text("status", |stored| stored.member.status.as_str().into()),
        int("generation", |stored| stored.member.generation.into()),
        int("version", |stored| stored.member.version.into()),
        int("updated_at", |stored| stored.member.updated_at.into()),
        text("password", |stored| (&stored.password).into()),
        text("otp_secret", |stored| (&stored.otp_secret).into()),
        text("otp_pending", |stored| (&stored.otp_pending).into()),
        int("otp_step", |stored| stored.otp_step.into()),
        text("recovery", |stored| json(&stored.recovery).into()),
        text("invitation", |stored| {
            stored.invitation.as_ref().map(|(hash, _)| hash.as_str()).into()
        }),
        int("invitation_until", |stored| stored.invitation.as_ref().map(|(_, at)| *at).into()),
    ],
    only_where: None,
};

/// Whether a member is as they were read.
pub static MEMBER_VERSIONS: Lookup =
    Lookup { name: "members", key: "id", columns: &[("version", Int)], lock: true };

/// The step of the last code of a member that was used: one counts once.
pub static OTP_STEPS: Lookup =
    Lookup { name: "members", key: "id", columns: &[("otp_step", Int)], lock: true };

/// A code that was used.
pub struct UsedStep {
    /// Whose it was.
    pub id: MemberId,
    /// Its step.
    pub step: i64,
}

/// Codes that were used.
pub static OTP_STEPS_USED: Update<UsedStep> = Update {
    name: "members",
    key: text("id", |used| used.id.as_str().into()),
    columns: &[int("otp_step", |used| used.step.into())],
    only_where: None,
};

/// A team as it was read: who changes it sees all of it.
pub struct TeamVersion {
    /// Whose it is.
    pub id: MerchantId,
    /// How often it was changed.
    pub version: i64,
}

/// Changes of teams.
pub static TEAM_CHANGES: Update<TeamVersion> = Update {
    name: "merchants",
    key: text("id", |team| team.id.as_str().into()),
    columns: &[int("team_version", |team| team.version.into())],
    only_where: None,
};

/// Whether a team is as it was read.
pub static TEAM_VERSIONS: Lookup =
    Lookup { name: "merchants", key: "id", columns: &[("team_version", Int)], lock: true };

/// A session as it is stored.
pub struct StoredSession {
    /// The session.
    pub session: Session,
    /// The keyed hash of its token.
    pub hash: String,
}

/// New sessions.
pub static SESSIONS: Table<StoredSession> = Table {
    name: "sessions",
    fixed: &[
        text("id", |stored| stored.session.id.as_str().into()),
        text("hash", |stored| (&stored.hash).into()),
        text("member_id", |stored| stored.session.member_id.as_str().into()),
        int("generation", |stored| stored.session.generation.into()),
        text("address", |stored| stored.session.address.to_string().into()),
        int("created_at", |stored| stored.session.created_at.into()),
        int("seen_at", |stored| stored.session.seen_at.into()),
        int("has_otp", |stored| i64::from(stored.session.has_otp).into()),
        int("confirmed_at", |stored| stored.session.confirmed_at.into()),
    ],
    changing: &[],
    on_conflict: None,
    is_sealed: false,
};

/// Sessions that were used.
pub static SESSIONS_SEEN: Update<Session> = Update {
    name: "sessions",
    key: text("id", |session| session.id.as_str().into()),
    columns: &[int("seen_at", |session| session.seen_at.into())],
    only_where: Some("t.seen_at < u.seen_at"),
};

/// Sessions whose members proved once more who they are.
pub static SESSIONS_CONFIRMED: Update<Session> = Update {
    name: "sessions",
    key: text("id", |session| session.id.as_str().into()),
    columns: &[
        int("has_otp", |session| i64::from(session.has_otp).into()),
        int("confirmed_at", |session| session.confirmed_at.into()),
    ],
    only_where: None,
};

/// Sessions that their members end.
pub static SESSIONS_ENDED: Update<Session> = Update {
    name: "sessions",
    key: text("id", |session| session.id.as_str().into()),
    columns: &[int("ended_at", |session| session.ended_at.into())],
    only_where: Some("t.ended_at IS NULL"),
};

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// How often a team was changed.
///
/// # Errors
/// The database cannot be read.
pub async fn get_team_version(pool: &AnyPool, id: &MerchantId) -> Result<i64, sqlx::Error> {
    let sql = "SELECT team_version FROM merchants WHERE id = $1";
    sqlx::query_scalar(sql).bind(id.as_str()).fetch_one(pool).await
}

/// One member.
///
/// # Errors
/// The database cannot be read.
pub async fn get_member(pool: &AnyPool, id: &MemberId) -> Result<Option<Stored>, sqlx::Error> {
    let sql = "SELECT * FROM members WHERE id = $1";
    let row = sqlx::query(sql).bind(id.as_str()).fetch_optional(pool).await?;
    row.map(|row| stored(&row)).transpose()
}

/// Whoever this invitation is for.
///
/// # Errors
/// The database cannot be read.
pub async fn find_invited(pool: &AnyPool, hash: &str) -> Result<Option<Stored>, sqlx::Error> {
    let sql = "SELECT * FROM members WHERE invitation = $1";
    let row = sqlx::query(sql).bind(hash).fetch_optional(pool).await?;
    row.map(|row| stored(&row)).transpose()
}

/// Members with this address who may sign in, the earliest first: of all teams, or of one.
///
/// # Errors
/// The database cannot be read.
pub async fn find_by_email(
    pool: &AnyPool,
    (email, merchant): (&str, Option<&MerchantId>),
    limit: i64,
) -> Result<Vec<Stored>, sqlx::Error> {
    let sql = "SELECT * FROM members WHERE email = $1 AND status = 'active' \
               AND ($2 = '' OR merchant_id = $2) ORDER BY id LIMIT $3";
    let query = sqlx::query(sql).bind(email).bind(merchant.map_or("", MerchantId::as_str));
    query.bind(limit).fetch_all(pool).await?.iter().map(stored).collect()
}

/// Everybody of a team who was not removed, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_team(pool: &AnyPool, merchant: &MerchantId) -> Result<Vec<Stored>, sqlx::Error> {
    let sql = "SELECT * FROM members WHERE merchant_id = $1 AND status <> 'removed' \
               ORDER BY id DESC";
    let rows = sqlx::query(sql).bind(merchant.as_str()).fetch_all(pool).await?;
    rows.iter().map(stored).collect()
}

/// The session with this hash, and its member.
///
/// # Errors
/// The database cannot be read.
pub async fn find_session(pool: &AnyPool, hash: &str) -> Result<Option<SignedIn>, sqlx::Error> {
    let sql = "SELECT * FROM sessions WHERE hash = $1";
    let Some(row) = sqlx::query(sql).bind(hash).fetch_optional(pool).await? else {
        return Ok(None);
    };
    let session = session(&row)?;
    let member = get_member(pool, &session.member_id).await?;
    Ok(member.map(|stored| SignedIn { session, member: stored.member }))
}

/// The sessions of a member that were begun since an instant, newest first.
///
/// # Errors
/// The database cannot be read.
pub async fn list_sessions(
    pool: &AnyPool,
    (member, since): (&MemberId, Moment),
    limit: i64,
) -> Result<Vec<Session>, sqlx::Error> {
    let sql = "SELECT * FROM sessions WHERE member_id = $1 AND created_at > $2 \
               ORDER BY created_at DESC LIMIT $3";
    let query = sqlx::query(sql).bind(member.as_str()).bind(since.micros()).bind(limit);
    query.fetch_all(pool).await?.iter().map(session).collect()
}

fn stored(row: &AnyRow) -> Result<Stored, sqlx::Error> {
    let text = |column| row.try_get::<String, _>(column);
    let maybe = |column| row.try_get::<Option<String>, _>(column);
    let number = |column| row.try_get::<i64, _>(column);
    let malformed = |cause: serde_json::Error| sqlx::Error::Decode(Box::new(cause));
    let unknown = |what: &'static str| sqlx::Error::Decode(what.into());
    let otp_secret = maybe("otp_secret")?;
    let permissions: Vec<Permission> =
        serde_json::from_str(&text("permissions")?).map_err(malformed)?;
    let until: Option<i64> = row.try_get("invitation_until")?;
    Ok(Stored {
        member: Member {
            id: MemberId::from_text(text("id")?),
            merchant_id: MerchantId::from_text(text("merchant_id")?),
            email: text("email")?,
            name: text("name")?,
            role: Role::parse(&text("role")?).ok_or_else(|| unknown("an unknown role"))?,
            permissions,
            // A standing that cannot be read is no licence to act.
            status: MemberStatus::parse(&text("status")?).unwrap_or(MemberStatus::Disabled),
            has_otp: otp_secret.is_some(),
            generation: number("generation")?,
            version: number("version")?,
            created_by: text("created_by")?,
            created_at: Moment::from_micros(number("created_at")?),
            updated_at: Moment::from_micros(number("updated_at")?),
        },
        password: maybe("password")?,
        otp_secret,
        otp_pending: maybe("otp_pending")?,
        otp_step: number("otp_step")?,
        recovery: serde_json::from_str(&text("recovery")?).map_err(malformed)?,
        invitation: maybe("invitation")?.zip(until.map(Moment::from_micros)),
    })
}

fn session(row: &AnyRow) -> Result<Session, sqlx::Error> {
    let at = |column| row.try_get::<i64, _>(column).map(Moment::from_micros);
    let address: String = row.try_get("address")?;
    let ended: Option<i64> = row.try_get("ended_at")?;
    Ok(Session {
        id: SessionId::from_text(row.try_get("id")?),
        member_id: MemberId::from_text(row.try_get("member_id")?),
        generation: row.try_get("generation")?,
        address: address.parse::<IpAddr>().map_err(|cause| sqlx::Error::Decode(cause.into()))?,
        has_otp: row.try_get::<i64, _>("has_otp")? != 0,
        created_at: at("created_at")?,
        seen_at: at("seen_at")?,
        confirmed_at: at("confirmed_at")?,
        ended_at: ended.map(Moment::from_micros),
    })
}
