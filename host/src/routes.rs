//! Every route on one screen.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::http::problem;
use crate::http::shell::{self, Shell};
use crate::rails::Rail;
use crate::{
    batches, beneficiaries, caller, conversions, lookup, openapi, operator, pages, payouts,
    reports, sandbox, wallets, webhooks,
};

/// The calls of merchants and of the operator, each with its documentation.
fn documented() -> OpenApiRouter<App> {
    of_merchants().merge(of_operators())
}

fn of_merchants() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(payouts::http::create, payouts::http::list))
        .routes(routes!(payouts::http::show_quote))
        .routes(routes!(payouts::http::retrieve))
        .routes(routes!(payouts::http::requery))
        .routes(routes!(payouts::http::cancel))
        .routes(routes!(payouts::http::show_timeline))
        .routes(routes!(batches::http::create))
        .routes(routes!(batches::http::retrieve))
        .routes(routes!(batches::http::items))
        .routes(routes!(batches::http::cancel))
        .routes(routes!(beneficiaries::http::save, beneficiaries::http::list))
        .routes(routes!(
            beneficiaries::http::retrieve,
            beneficiaries::http::update,
            beneficiaries::http::delete
        ))
        .routes(routes!(wallets::http::list))
        .routes(routes!(wallets::http::balances))
        .routes(routes!(wallets::http::retrieve))
        .routes(routes!(wallets::http::balance))
        .routes(routes!(wallets::http::transactions))
        .routes(routes!(wallets::http::funding_events))
        .routes(routes!(conversions::http::rates))
        .routes(routes!(conversions::http::create, conversions::http::list))
        .routes(routes!(conversions::http::quote))
        .routes(routes!(conversions::http::retrieve))
        .routes(routes!(reports::http::catalogue))
        .routes(routes!(reports::http::payouts))
        .routes(routes!(reports::http::funding))
        .routes(routes!(reports::http::cashflow))
        .routes(routes!(reports::http::fees))
        .routes(routes!(reports::http::bank_statement))
        .routes(routes!(reports::http::failed_payouts))
        .routes(routes!(lookup::http::banks))
        .routes(routes!(lookup::http::momo_operators))
        .routes(routes!(lookup::http::name_enquiry))
        .routes(routes!(lookup::http::events))
        .routes(routes!(lookup::stream::stream_events))
        .routes(routes!(lookup::requests::request_logs))
        .routes(routes!(lookup::http::explain_error))
        .routes(routes!(webhooks::http::create, webhooks::http::list))
        .routes(routes!(webhooks::http::retrieve, webhooks::http::update, webhooks::http::delete))
        .routes(routes!(webhooks::http::rotate_secret))
        .routes(routes!(webhooks::http::test))
        .routes(routes!(webhooks::http::deliveries))
        .routes(routes!(webhooks::http::replay))
        .routes(routes!(sandbox::http::settle))
        .routes(routes!(sandbox::http::fail))
        .routes(routes!(sandbox::http::send_back))
        .routes(routes!(sandbox::http::fund))
        .routes(routes!(sandbox::recipients::list))
}

/// Files of payments, what banks say, and what has to be looked at.
fn of_the_desk() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operator::files::windows::list))
        .routes(routes!(operator::files::windows::close))
        .routes(routes!(operator::files::windows::hold))
        .routes(routes!(operator::files::windows::release))
        .routes(routes!(operator::files::list))
        .routes(routes!(operator::files::retrieve))
        .routes(routes!(operator::files::payments))
        .routes(routes!(operator::files::content))
        .routes(routes!(operator::files::acts::hold))
        .routes(routes!(operator::files::acts::release))
        .routes(routes!(operator::files::acts::deliver))
        .routes(routes!(operator::alerts::list))
        .routes(routes!(operator::alerts::acknowledge))
        .routes(routes!(operator::alerts::test))
        .routes(routes!(operator::alerts::list_notifications))
        .routes(routes!(operator::settlement::entries))
        .routes(routes!(operator::settlement::adjust, operator::settlement::adjustments))
}

/// What members of teams may call, too, says so itself.
fn of_operators() -> OpenApiRouter<App> {
    of_teams()
        .merge(of_the_desk())
        .routes(routes!(operator::merchants::create, operator::merchants::list))
        .routes(routes!(operator::merchants::retrieve, operator::merchants::update))
        .routes(routes!(operator::keys::create, operator::keys::list))
        .routes(routes!(operator::keys::retrieve))
        .routes(routes!(operator::keys::rotate))
        .routes(routes!(operator::keys::revoke))
        .routes(routes!(operator::wallets::list))
        .routes(routes!(operator::wallets::inspect))
        .routes(routes!(operator::wallets::credit))
        .routes(routes!(operator::wallets::debit))
        .routes(routes!(operator::wallets::freeze))
        .routes(routes!(operator::wallets::unfreeze))
        .routes(routes!(operator::payouts::approve))
        .routes(routes!(operator::payouts::decline))
        .routes(routes!(operator::payouts::cancel))
        .routes(routes!(operator::payouts::release))
        .routes(routes!(operator::payouts::reject))
        .routes(routes!(operator::payouts::mark_paid))
        .routes(routes!(operator::payouts::mark_failed))
        .routes(routes!(operator::payouts::reverse))
        .routes(routes!(operator::payouts::recall))
        .routes(routes!(operator::batches::list))
        .routes(routes!(operator::batches::retrieve))
        .routes(routes!(operator::batches::items))
        .routes(routes!(operator::batches::approve))
        .routes(routes!(operator::batches::reject))
        .routes(routes!(operator::batches::hold))
        .routes(routes!(operator::cases::list))
        .routes(routes!(operator::cases::retrieve))
        .routes(routes!(operator::cases::resolve))
        .routes(routes!(operator::quarantine::retrieve))
        .routes(routes!(operator::quarantine::release))
        .routes(routes!(operator::routes::list, operator::routes::create))
        .routes(routes!(
            operator::routes::retrieve,
            operator::routes::update,
            operator::routes::remove
        ))
        .routes(routes!(operator::rates::list, operator::rates::set, operator::rates::remove))
        .routes(routes!(operator::rates::import))
        .routes(routes!(operator::rate_sources::list))
        .routes(routes!(operator::fx_limits::positions))
        .routes(routes!(operator::fx_limits::limit))
        .routes(routes!(operator::blacklist::list, operator::blacklist::create))
        .routes(routes!(operator::blacklist::remove))
        .routes(routes!(operator::audit_log::list))
        .routes(routes!(operator::modules::rails))
        .routes(routes!(operator::rule_packs::list, operator::rule_packs::push))
        .routes(routes!(operator::rule_packs::retrieve))
        .routes(routes!(operator::rule_packs::differences))
        .routes(routes!(operator::assignments::shadow))
        .routes(routes!(operator::assignments::activate))
        .routes(routes!(operator::assignments::rollback))
        .routes(routes!(operator::assignments::retire))
        .routes(routes!(operator::decisions::show))
        .routes(routes!(operator::decisions::backtest))
}

/// Who belongs to a merchant, and what waits for somebody.
fn of_teams() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(operator::approval_requests::list))
        .routes(routes!(operator::approval_requests::refuse))
        .routes(routes!(operator::team::members::create, operator::team::members::list))
        .routes(routes!(
            operator::team::members::retrieve,
            operator::team::members::update,
            operator::team::members::remove
        ))
        .routes(routes!(operator::team::invitations::invite_again))
        .routes(routes!(operator::team::invitations::accept))
        .routes(routes!(operator::team::sessions::create, operator::team::sessions::list))
        .routes(routes!(operator::team::sessions::retrieve, operator::team::sessions::end))
        .routes(routes!(operator::team::sessions::confirm))
        .routes(routes!(operator::team::sessions::change_password))
        .routes(routes!(
            operator::team::one_time_codes::begin,
            operator::team::one_time_codes::remove
        ))
        .routes(routes!(operator::team::one_time_codes::confirm))
        .routes(routes!(operator::waiting::list))
        .routes(routes!(operator::waiting::retrieve))
        .routes(routes!(operator::waiting::show_timeline))
        .routes(routes!(operator::under_way::list))
}

/// What each call may refuse, by operation id.
fn errors() -> openapi::Refusals {
    let mut errors = [
        payouts::http::ERRORS,
        batches::http::ERRORS,
        beneficiaries::http::ERRORS,
        wallets::http::ERRORS,
        conversions::http::ERRORS,
        reports::http::ERRORS,
        lookup::http::ERRORS,
        lookup::stream::ERRORS,
        lookup::requests::ERRORS,
        webhooks::http::ERRORS,
        sandbox::http::ERRORS,
        sandbox::recipients::ERRORS,
    ]
    .concat();
    errors.extend(operator::errors());
    errors
}

/// The whole OpenAPI document, for a host with these rails.
#[must_use]
pub fn document(rails: &[Arc<Rail>]) -> Value {
    openapi::complete(&documented().to_openapi(), &errors(), rails)
}

/// Which part of the service a listener offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Everything.
    Whole,
    /// What merchants and networks call.
    Public,
    /// What operators call, and metrics.
    Operators,
}

/// What another door offers is not there, whoever asks: not even a right token is told from a wrong
/// one.
async fn hide(door: Door, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_elsewhere = match door {
        Door::Whole => false,
        Door::Public => path == "/admin/v1" || path.starts_with("/admin/v1/"),
        Door::Operators => path == "/v1" || path.starts_with("/v1/"),
    };
    match is_elsewhere {
        true => problem::not_found().await.into_response(),
        false => next.run(request).await,
    }
}

/// The service behind one door, behind its gates and inside its shell.
pub fn service(app: &App, door: Door) -> Router {
    let calls = match door {
        Door::Whole => documented(),
        Door::Public => of_merchants(),
        Door::Operators => of_operators(),
    };
    let (calls, _) = calls.split_for_parts();
    let mut pages = pages::health();
    if door != Door::Public {
        pages = pages.merge(pages::metrics());
    }
    if door != Door::Operators {
        let rails = app.rails.all();
        pages = pages.merge(pages::public(move || document(&rails)));
    }
    let shell = Shell {
        ids: app.ids.clone(),
        docs_url: format!("{}/errors", app.config.public_url()).into(),
        timeout: Duration::from_secs(app.config.server.timeout_s),
        metrics: app.metrics.requests.clone(),
    };
    let timeout = shell.timeout;
    calls
        .merge(pages)
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        // The first is the outermost. As one layer: whoever is within another one is boxed, and
        // copied for each request with all that it is within.
        .layer((
            from_fn(move |request, next| shell::run(shell.clone(), request, next)),
            from_fn(move |request, next| hide(door, request, next)),
            from_fn_with_state(app.clone(), caller::gate),
            from_fn(move |request, next| shell::answer(timeout, request, next)),
            from_fn(problem::refuse_unreadable),
        ))
        .with_state(app.clone())
}
