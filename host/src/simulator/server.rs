//! The simulator on a port of its own.

use std::convert::Infallible;

use axum::body::Body;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::wasm::egress::HangUp;

use super::Simulator;

/// The simulator hung up: hyper closes the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("hung up")]
struct HungUp;

/// Serves until `stopping` is cancelled.
///
/// # Errors
/// The listener fails.
pub async fn serve(
    simulator: &Simulator,
    listener: TcpListener,
    stopping: CancellationToken,
) -> std::io::Result<()> {
    let router = simulator.router();
    loop {
        let (stream, _) = tokio::select! {
            () = stopping.cancelled() => return Ok(()),
            accepted = listener.accept() => accepted?,
        };
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            async move {
                let answered: Result<Response<Body>, Infallible> =
                    router.oneshot(request.map(Body::new)).await;
                let Ok(response) = answered;
                match response.extensions().get::<HangUp>() {
                    Some(_) => Err(HungUp),
                    None => Ok(response),
                }
            }
        });
        tokio::spawn(async move {
            let mut http = hyper::server::conn::http1::Builder::new();
            let connection = http.timer(TokioTimer::new());
            // A connection that ends badly ends; hanging up is one of the ways.
            let _ = connection.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}
