//! What a handler leaves of a request's body. It is read and thrown away, for a moment: who is refused
//! while they are still sending would otherwise find their connection closed, and no answer.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::{Frame, SizeHint};

use crate::config::limits;

/// The same request, whose body is read to its end whoever refuses it.
pub(super) fn read_out(request: Request) -> Request {
    match request.body().is_end_stream() {
        true => request,
        false => request.map(|body| Body::new(ReadOut(Some(body)))),
    }
}

/// A body; nothing once it was read to its end.
struct ReadOut(Option<Body>);

impl HttpBody for ReadOut {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for ReadOut {
    fn drop(&mut self) {
        let Some(body) = self.0.take().filter(|body| !body.is_end_stream()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let mut rest = Limited::new(body, limits::BODY_BYTES_MAX);
            let to_its_end = async { while let Some(Ok(_)) = rest.frame().await {} };
            // Whoever takes longer is cut off.
            let _ = tokio::time::timeout(limits::UNREAD_MAX, to_its_end).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware::{Next, from_fn};
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    async fn answered(stream: &mut TcpStream) -> String {
        let mut heard = vec![0; 4_096];
        let count = stream.read(&mut heard).await.expect("an answer");
        String::from_utf8_lossy(&heard[..count]).into_owned()
    }

    /// A caller who is refused while still sending is answered, and may go on on the same connection.
    #[tokio::test]
    async fn whoever_is_refused_before_the_end_of_a_body_is_answered() {
        let reading = |request: Request, next: Next| next.run(read_out(request));
        let refusing = Router::new().route("/", post(|| async { "refused" }));
        let service = refusing.layer(from_fn(reading));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, service).await });
        let mut stream = TcpStream::connect(address).await.expect("connected");
        for _ in 0..3 {
            let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 300000\r\n\r\n";
            stream.write_all(head.as_bytes()).await.expect("sent");
            stream.write_all(&[b'x'; 100]).await.expect("sent");
            assert!(answered(&mut stream).await.ends_with("refused"));
            stream.write_all(&[b'x'; 299_900]).await.expect("nobody has hung up");
        }
        stream.write_all(b"POST / HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("sent");
        assert!(answered(&mut stream).await.ends_with("refused"));
    }
}
