//! Telling the simulated networks how a transfer goes on, and asking what they have seen.

use axum::extract::{Path, State as From};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;

use super::{Event, Simulator, TellError};

pub(super) fn router(simulator: Simulator) -> Router {
    Router::new()
        .route("/control/transfers", get(list))
        .route("/control/{rail}/transfers/{reference}/{event}", post(tell))
        .with_state(simulator)
}

async fn list(From(simulator): From<Simulator>) -> Response {
    match simulator.transfers().await {
        Ok(transfers) => Json(transfers).into_response(),
        Err(cause) => (StatusCode::SERVICE_UNAVAILABLE, cause.to_string()).into_response(),
    }
}

/// Settles, fails or returns a transfer.
async fn tell(
    From(simulator): From<Simulator>,
    Path((rail, reference, event)): Path<(String, String, String)>,
) -> Response {
    let event = match event.as_str() {
        "settle" => Event::Settle,
        "fail" => Event::Fail,
        "return" => Event::Return,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    match simulator.tell(&rail, (&reference, event)).await {
        Ok(transfer) => Json(transfer).into_response(),
        Err(TellError::Impossible) => StatusCode::CONFLICT.into_response(),
        Err(TellError::Unknown) => StatusCode::NOT_FOUND.into_response(),
        Err(TellError::Broken(why)) => (StatusCode::SERVICE_UNAVAILABLE, why).into_response(),
    }
}
