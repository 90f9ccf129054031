//! Telling the simulated networks how a transfer goes on, and asking what they have seen.

use axum::extract::{Path, State as From};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::StatusCode;

use super::transfers::State;
use super::{Simulator, mpesa, nip};

pub(super) fn router(simulator: Simulator) -> Router {
    Router::new()
        .route("/control/transfers", get(list))
        .route("/control/transfers/{reference}/{step}", post(step))
        .with_state(simulator)
}

async fn list(From(simulator): From<Simulator>) -> Response {
    match simulator.transfers().await {
        Ok(transfers) => Json(transfers).into_response(),
        Err(cause) => (StatusCode::SERVICE_UNAVAILABLE, cause.to_string()).into_response(),
    }
}

/// Settles, fails or returns a transfer.
async fn step(
    From(simulator): From<Simulator>,
    Path((reference, step)): Path<(String, String)>,
) -> Response {
    let changed = simulator.0.transfers.change(&reference, |found| {
        let transfer = found.as_mut()?;
        match (step.as_str(), &transfer.state) {
            ("settle", State::Pending | State::Unclear) => transfer.pay(),
            ("fail", State::Pending | State::Unclear) => {
                let code = if transfer.tell_at.is_some() { mpesa::REFUSAL } else { nip::REFUSAL };
                transfer.state = State::Refused(code.to_owned());
            }
            ("return", State::Paid) if transfer.tell_at.is_none() => {
                transfer.state = State::Returned;
            }
            _ => return Some((transfer.clone(), false)),
        }
        Some((transfer.clone(), true))
    });
    match changed.await {
        Ok(Some((transfer, true))) => {
            if transfer.tell_at.is_some() {
                simulator.send(&transfer.reference, mpesa::decided(&transfer));
            } else if transfer.state == State::Returned {
                let message = nip::returned_funds(&transfer, simulator.0.clock.now());
                simulator.send(&transfer.reference, message);
            }
            Json(transfer).into_response()
        }
        Ok(Some((transfer, false))) => (StatusCode::CONFLICT, Json(transfer)).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(cause) => (StatusCode::SERVICE_UNAVAILABLE, cause.to_string()).into_response(),
    }
}
