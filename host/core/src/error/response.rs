//! Refusals as responses.
//!
//! A handler returns a [`Problem`]; here it becomes a bare status that carries the problem
//! along. The shell around all handlers writes the envelope, because it knows the request's
//! id and the address of the error pages.

use std::sync::Arc;

use axum_core::response::{IntoResponse, Response};
use http::StatusCode;

use super::Problem;

/// A problem on its way from a handler to the shell.
#[derive(Clone)]
pub struct Carried(pub Arc<Problem>);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code().entry().status)
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = status.into_response();
        response.extensions_mut().insert(Carried(Arc::new(self)));
        response
    }
}
