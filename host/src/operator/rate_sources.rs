//! Rates that come by themselves: where from, and how that goes.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::caller::Operator;
use crate::clock::Moment;
use crate::db;
use crate::error::{ErrorCode, Problem};
use crate::fx::provider::{Heard, Next};
use crate::fx::source::Published;
use crate::fx::{Provider, SetRate, sql};
use crate::http::Page;
use crate::money::Currency;

use super::rates::write_all;
use crate::approvals::Agreement;

/// What each call may refuse, besides what every call may.
pub const ERRORS: &[(&str, &[ErrorCode])] = &[("list_rate_sources", &[])];

/// A source of rates, and how it fares on the host that answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct RateSourceView {
    /// Always `rate_source`.
    #[schema(example = "rate_source")]
    pub object: &'static str,
    /// `test` or `live`.
    pub env: &'static str,
    /// The name in its declaration: rates bear it as their `source`.
    #[schema(example = "ecb")]
    pub name: String,
    /// The version in its declaration.
    pub version: String,
    /// A title to show; it decides nothing.
    pub title: String,
    /// SHA-256 of its file.
    pub digest: String,
    /// The provider's address.
    #[schema(example = "https://www.ecb.europa.eu/stats/eurofxref")]
    pub url: String,
    /// Rates of all pairs of these currencies are kept up.
    #[schema(value_type = Vec<String>)]
    pub currencies: Vec<Currency>,
    /// What the platform keeps of each, in basis points.
    pub spread_bps: i64,
    /// Seconds after its own instant from which on a rate is too old to be used.
    pub valid_for_s: u64,
    /// How often the provider is asked, in seconds.
    pub every_s: u64,
    /// A rate that moves further at once, in basis points, is left to a person.
    pub move_max_bps: u32,
    /// When the provider was asked last; null where it was not yet.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub asked_at: Option<Moment>,
    /// As of when the newest of its rates is; null where it has not told any yet.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub as_of: Option<Moment>,
    /// Attempts in a row that came to nothing.
    pub failures: u32,
    /// Why the last one did.
    pub problem: Option<String>,
    /// Rates that are not kept up.
    pub left_alone: Vec<LeftAlone>,
}

/// A rate that a source does not keep up.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeftAlone {
    /// What the rate is known by.
    #[schema(example = "live/-/USD/NGN")]
    pub rate_id: String,
    /// Why, and what to do about it.
    pub why: String,
}

/// List rate sources
///
/// Where rates come from by themselves, as it is configured under `rate_sources`.
#[utoipa::path(
    get, path = "/admin/v1/rate_sources", operation_id = "list_rate_sources", tag = "Operator",
    responses((status = 200, description = "By environment", body = inline(Page<RateSourceView>))),
)]
pub async fn list(
    State(app): State<App>,
    _operator: Operator,
) -> Result<Page<RateSourceView>, Problem> {
    Ok(Page::whole(app.providers.all().map(|provider| view(provider)).collect()))
}

fn view(provider: &Provider) -> RateSourceView {
    let (state, terms, about) = (provider.state(), &provider.terms, &provider.source.about);
    let left_alone = state.left_alone.into_iter();
    RateSourceView {
        object: "rate_source",
        env: provider.env.as_str(),
        name: about.name.clone(),
        version: about.version.clone(),
        title: about.title.clone(),
        digest: provider.source.digest.clone(),
        url: provider.url().to_owned(),
        currencies: provider.currencies.clone(),
        spread_bps: terms.spread_bps,
        valid_for_s: terms.valid_for_s,
        every_s: terms.every_s,
        move_max_bps: terms.move_max_bps,
        asked_at: state.asked_at,
        as_of: state.as_of,
        failures: state.failures,
        problem: state.problem,
        left_alone: left_alone.map(|(rate_id, why)| LeftAlone { rate_id, why }).collect(),
    }
}

/// Keeps up what a provider publishes, until the host stops.
pub async fn keep_up(app: App, provider: Arc<Provider>) {
    loop {
        let now = app.now();
        let heard = ask(&app, &provider).await;
        let before = provider.state();
        let (env, name) = (provider.env.as_str(), &provider.source.about.name);
        match &heard {
            Ok(heard) if heard.left_alone != before.left_alone => {
                let left_alone = &heard.left_alone;
                tracing::warn!(env, name, ?left_alone, "rates that a source does not keep up");
            }
            Ok(_) if before.failures > 0 => tracing::info!(env, name, "a rate source is back"),
            Err(why) if before.problem.as_ref() != Some(why) => {
                tracing::warn!(env, name, why, "rates stay as they are: their source fails");
            }
            _ => {}
        }
        provider.note(now, heard);
        tokio::select! {
            () = app.stopping.cancelled() => return,
            () = tokio::time::sleep(provider.wait()) => {}
        }
    }
}

/// Asks a provider, and sets what is new, all or nothing.
async fn ask(app: &App, provider: &Provider) -> Result<Heard, String> {
    let published = tokio::select! {
        () = app.stopping.cancelled() => return Err("the host stops".to_owned()),
        published = provider.ask(|| app.now()) => published?,
    };
    if let Some(heard) = set(app, provider, &published).await? {
        return Ok(heard);
    }
    let heard = set(app, provider, &published).await?;
    heard.ok_or_else(|| "somebody else sets these rates all the time".to_owned())
}

/// Sets what is new of what a provider publishes, all or nothing; nothing where somebody else has set
/// one of them at the same moment.
async fn set(
    app: &App,
    provider: &Provider,
    published: &Published,
) -> Result<Option<Heard>, String> {
    let now = app.now();
    let mut heard = Heard::default();
    let mut rates: Vec<(Option<SetRate>, SetRate)> = Vec::new();
    for pair in provider.kept() {
        let id = pair.rate_id(None);
        let before = db::in_time(sql::rate(app.db.pool(), &id)).await;
        let before = before.map_err(|cause| cause.to_string())?;
        let told = published.rate(pair.from, pair.to);
        heard.as_of = heard.as_of.max(told.map(|told| told.as_of));
        match provider.next((pair, told), before.as_ref(), now) {
            Next::Set(set) => rates.push((before, set)),
            Next::AsItIs => {}
            Next::LeftAlone(why) => heard.left_alone.push((id, why)),
            Next::TakenOut(set, why) => {
                heard.left_alone.push((id, why));
                rates.push((before, set));
            }
        }
    }
    if heard.as_of.is_none() {
        return Err("the answer tells none of the rates that are kept up".to_owned());
    }
    if rates.is_empty() {
        return Ok(Some(heard));
    }
    match write_all(app, &Operator::host(), rates, Agreement::default()).await {
        Ok(_) => Ok(Some(heard)),
        Err(problem) if problem.code() == ErrorCode::StateConflict => Ok(None),
        Err(problem) => Err(problem.to_string()),
    }
}
