//! Refusals that no handler makes, and what a response refuses.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;

use crate::error::{Carried, ErrorCode, Problem};

/// What a response on its way to the shell refuses, if it does.
#[must_use]
pub fn refusal(response: &Response) -> Option<ErrorCode> {
    response.extensions().get::<Carried>().map(|Carried(problem)| problem.code())
}

/// Answers a path that is not text before anybody looks for an id in it.
pub async fn refuse_unreadable(request: Request, next: Next) -> Response {
    match percent_decode_str(request.uri().path()).decode_utf8() {
        Ok(path) if !path.contains('\0') => next.run(request).await,
        _ => not_found().await.into_response(),
    }
}

/// Answers every path that does not exist.
pub async fn not_found() -> Problem {
    Problem::because(ErrorCode::NotFound, "This path does not exist.")
}

/// Answers every method that a path does not take.
pub async fn method_not_allowed() -> Problem {
    Problem::new(ErrorCode::MethodNotAllowed)
}
