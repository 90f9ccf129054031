//! Blacklists: recipients that nobody pays, or that one merchant does not.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit::masked_fields;
use crate::caller::{Done, Operator};
use crate::clock::Moment;

use crate::error::{ErrorCode, Problem};
use crate::http::{Body, Page, PageQuery, Query};
use crate::id::MerchantId;
use crate::money::Currency;
use crate::rails::{Block as Given, Choice, RecipientFields};
use crate::recipients::account_hash;
use crate::recipients::sql::{self, Block};

use super::unique::Unique;
use super::{invalid, required, write};

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[
    ("list_blacklist", &[ErrorCode::InvalidLimit, ErrorCode::InvalidField]),
    (
        "create_block",
        &[
            ErrorCode::MissingField,
            ErrorCode::InvalidField,
            ErrorCode::NotFound,
            ErrorCode::CurrencyNotActive,
            ErrorCode::UnknownBankCode,
            ErrorCode::UnknownOperator,
            ErrorCode::InvalidRecipient,
            ErrorCode::InvalidAccount,
            ErrorCode::RecipientUnresolvable,
            ErrorCode::StateConflict,
        ],
    ),
    ("delete_block", &[ErrorCode::NotFound]),
];

/// An entry of a blacklist.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlockView {
    /// Always `blacklist_entry`.
    #[schema(example = "blacklist_entry")]
    pub object: &'static str,
    /// The id, which sorts by time of creation.
    pub id: String,
    /// `platform` or `merchant`.
    pub scope: &'static str,
    /// The merchant whose payouts it blocks; null for scope `platform`.
    pub merchant_id: Option<String>,
    /// The recipient's currency.
    pub currency: String,
    /// The recipient as it was given, by its rail's fields.
    #[schema(value_type = Object)]
    pub recipient: Value,
    /// Why it is blocked, for operators.
    pub reason: String,
    /// When it was blocked.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Moment,
}

/// List blacklist entries
#[utoipa::path(
    get, path = "/admin/v1/blacklist", operation_id = "list_blacklist", tag = "Operator",
    params(PageQuery),
    responses((status = 200, description = "Newest first", body = inline(Page<BlockView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Page<BlockView>, Problem> {
    let limit = page.limit()?;
    let cursor = page.starting_after.as_deref();
    if let Some(id) = cursor
        && sql::get_block(app.db.pool(), id).await?.is_none()
    {
        return Err(PageQuery::unknown_cursor());
    }
    let blocks = sql::list_blocks(app.db.pool(), cursor, limit).await?;
    Ok(Page::of(blocks.into_iter().map(view).collect(), limit))
}

/// Block a recipient
#[utoipa::path(
    post, path = "/admin/v1/blacklist", operation_id = "create_block", tag = "Operator",
    request_body(content = Object, description = "`scope` (platform or merchant), `merchant_id`, \
        `currency`, the recipient's identifying fields, `reason`"),
    responses((status = 201, description = "Blocked", body = BlockView)),
)]
pub async fn create(
    State(app): State<App>,
    operator: Operator,
    body: Body<BTreeMap<String, Value>>,
) -> Result<(StatusCode, Json<BlockView>), Problem> {
    let body = body.value;
    let text = |name: &str| match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(invalid(name, "must be a string")),
    };
    let merchant_id = match required("scope", text("scope")?)?.as_str() {
        "platform" => None,
        "merchant" => {
            let id = required("merchant_id", text("merchant_id")?)?;
            Some(super::merchants::find(&app, &id).await?.id)
        }
        _ => return Err(invalid("scope", "must be platform or merchant")),
    };
    let currency = Currency::parse(&required("currency", text("currency")?)?);
    let currency = currency.ok_or_else(|| invalid("currency", "must be an ISO 4217 code"))?;
    let reason = required("reason", text("reason")?)?;
    let (rail, method) =
        app.rails.serving(currency, Choice::by(&|name| text(name).ok().flatten()))?;
    for field in &rail.declaration.recipient.fields {
        text(&field.name)?;
    }
    // A bank is called by whatever name its network has for it, or as payouts call it.
    let (bank, code) = (rail.declaration.recipient.bank.as_deref(), text("bank_code")?);
    let given = |name: &str| {
        let own = text(name).ok().flatten();
        own.or_else(|| code.clone().filter(|_| bank == Some(name)))
    };
    let checked = app.recipients.check(&rail, (&method, currency, Given::Identity), given).await?;
    let block = Block {
        id: app.ids.id(),
        merchant_id,
        currency: currency.to_string(),
        identity: account_hash(&checked.identity).to_owned(),
        subject: checked.fields.to_json(),
        reason,
        created_at: app.now(),
    };
    if sql::has_block(app.db.pool(), &block).await? {
        let message = "This recipient is blocked already, in this scope.";
        return Err(Problem::because(ErrorCode::StateConflict, message));
    }
    let done = Done {
        action: "blacklist.add",
        subject: ("blacklist_entry", block.id.as_str()),
        before: None,
        after: Some(state(&block)),
    };
    let rows = vec![sql::BLOCKS.insert(&block)];
    write(&app, &operator, done, unique(&block).make(rows)).await?;
    Ok((StatusCode::CREATED, Json(view(block))))
}

/// Unblock a recipient
#[utoipa::path(
    delete, path = "/admin/v1/blacklist/{id}", operation_id = "delete_block", tag = "Operator",
    params(("id" = String, Path, description = "The entry")),
    responses((status = 200, description = "What was removed", body = BlockView)),
)]
pub async fn remove(
    State(app): State<App>,
    operator: Operator,
    Path(id): Path<String>,
) -> Result<Json<BlockView>, Problem> {
    let found = sql::get_block(app.db.pool(), &id).await?;
    let block = found.ok_or_else(|| Problem::because(ErrorCode::NotFound, "No such entry."))?;
    let done = Done {
        action: "blacklist.remove",
        subject: ("blacklist_entry", block.id.as_str()),
        before: Some(state(&block)),
        after: None,
    };
    let rows = vec![sql::BLOCK_REMOVALS.of(block.id.as_str())];
    write(&app, &operator, done, unique(&block).remove(rows)).await?;
    Ok(Json(view(block)))
}

/// There is one entry for each recipient and scope.
fn unique(block: &Block) -> Unique {
    let merchant = block.merchant_id.as_ref().map_or("", MerchantId::as_str);
    Unique::new("block", &format!("{}/{}/{merchant}", block.currency, block.identity))
}

/// An entry as the audit log shows it.
fn state(block: &Block) -> Value {
    json!({
        "scope": block.scope(),
        "merchant_id": block.merchant_id,
        "currency": block.currency,
        "recipient": masked_fields(&json!(own(&block.subject)).to_string()),
        "reason": block.reason,
    })
}

fn view(block: Block) -> BlockView {
    BlockView {
        object: "blacklist_entry",
        id: block.id.to_string(),
        scope: if block.merchant_id.is_some() { "merchant" } else { "platform" },
        merchant_id: block.merchant_id.map(|id| id.to_string()),
        currency: block.currency,
        recipient: json!(own(&block.subject)),
        reason: block.reason,
        created_at: block.created_at,
    }
}

/// The recipient's own fields.
fn own(subject: &str) -> BTreeMap<String, String> {
    let fields = RecipientFields::from_json(subject);
    fields.own().map(|(name, value)| (name.clone(), value.clone())).collect()
}
