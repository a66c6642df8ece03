//! A service of models, played by the test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A request that arrived, with its whole body.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A service and what it was asked.
pub(crate) struct Fake {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Answers each request by `answer`, once its body has arrived.
    pub(crate) async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_with(answer, |stream| async move { Some(stream) }).await
    }

    /// The same behind `wrap`, which may be TLS.
    pub(crate) async fn start_with<S, F>(
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
        wrap: impl Fn(tokio::net::TcpStream) -> F + Send + Sync + 'static,
    ) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Future<Output = Option<S>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer) = (Arc::clone(&asked), Arc::new(answer));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (kept, answer, stream) = (Arc::clone(&kept), Arc::clone(&answer), wrap(stream));
                tokio::spawn(async move {
                    let Some(stream) = stream.await else { return };
                    let service = service_fn(|request: Request<Incoming>| {
                        let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                        async move {
                            let (parts, body) = request.into_parts();
                            let line = format!("{} {}", parts.method, parts.uri);
                            let Ok(body) = body.collect().await else { return Err("the client went away") };
                            let asked = Asked { line, headers: parts.headers, body: body.to_bytes() };
                            kept.lock().unwrap().push(asked.clone());
                            Ok(answer(&asked))
                        }
                    });
                    let _ended = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests whose line begins like this.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.asked().iter().filter(|asked| asked.line.starts_with(line)).count()
    }
}

/// An answer with a whole body.
pub(crate) fn answer(status: u16, content_type: &str, body: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(body.as_bytes())).boxed_unsync();
    Response::builder().status(status).header("content-type", content_type).body(body).unwrap()
}

pub(crate) fn json(status: u16, body: &str) -> Answer {
    answer(status, "application/json", body)
}

/// An answer of events that the test sends one by one. The receiver hears when nobody takes them any more.
pub(crate) fn events() -> (Answer, mpsc::UnboundedSender<Bytes>, oneshot::Receiver<()>) {
    let (send, pieces) = mpsc::unbounded_channel();
    let (gone, heard) = oneshot::channel();
    let body = Pieces { pieces, _gone: gone }.boxed_unsync();
    let answer = Response::builder().header("content-type", "text/event-stream").body(body).unwrap();
    (answer, send, heard)
}

struct Pieces {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    /// Dropped with the body.
    _gone: oneshot::Sender<()>,
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.pieces.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Hands out prepared answers one by one.
pub(crate) struct Once<T>(Mutex<Vec<T>>);

impl<T> Once<T> {
    pub(crate) fn new(mut all: Vec<T>) -> Self {
        all.reverse();
        Self(Mutex::new(all))
    }

    pub(crate) fn take(&self) -> T {
        self.0.lock().unwrap().pop().expect("an answer for each request")
    }
}
