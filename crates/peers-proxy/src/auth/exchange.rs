//! One request, from its head to its last byte.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{Either, Empty, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, EXPECT, HOST, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use subtle::ConstantTimeEq;
use tokio::time::timeout;

use super::credential::Grant;
use super::headers::{self, Handshake};
use super::intake::{Intake, Load, Progress, drain};
use super::ledger::{Entry, Ledger};
use super::options::{Limits, Peer};
use super::outlet::Outlet;
use super::refusal::Refusal;
use super::service::{Service, split};
use super::tunnel::Tunnel;
use super::upstream::{Opened, Running, Upstream};
use super::usage::Meter;

/// What all requests share.
pub(super) struct Shared {
    pub(super) limits: Limits,
    pub(super) upstream: Arc<Upstream>,
    pub(super) ledger: Arc<Ledger>,
}

/// Where a request leaves the WebSocket that its connection becomes.
pub(super) type Slot = Arc<Mutex<Option<Tunnel>>>;

/// An answer of the proxy, of a service, or to a handshake.
pub(super) type Answer = Response<Either<Full<Bytes>, Either<Outlet, Empty<Bytes>>>>;

/// A request that may go on.
struct Admitted<'p> {
    service: &'p Service,
    /// Path and query as the service gets them.
    target: Uri,
    handshake: Handshake,
}

/// An answer of a service, and what keeps it coming.
struct Answered {
    response: Response<Incoming>,
    running: Running,
}

/// Answers a request of `peer`.
pub(super) async fn answer(
    shared: Arc<Shared>,
    peer: Arc<Peer>,
    slot: Slot,
    mut request: Request<Incoming>,
) -> Answer {
    let mut entry = shared.ledger.open(peer.name.as_str());
    let upgrade = hyper::upgrade::on(&mut request);
    let (mut parts, body) = request.into_parts();
    let admitted = match admit(&shared, &peer, &parts) {
        Ok(admitted) => admitted,
        Err(refusal) => {
            let path = (refusal == Refusal::Route).then(|| parts.uri.path());
            entry.refuse(&refusal, path);
            if !parts.headers.contains_key(EXPECT) {
                drain(body).await;
            }
            return refusal.response().map(Either::Left);
        }
    };
    entry.route = Some(admitted.service.name.clone());
    entry.billed = admitted.handshake == Handshake::WebSocket
        || parts.method == Method::POST && !admitted.target.path().ends_with("/count_tokens");
    headers::clean_request(&mut parts.headers, admitted.handshake);
    match forward(&shared, &admitted, &parts, body, &mut entry).await {
        Ok(answered) => pass_on(&shared, &admitted, answered, entry, upgrade, &slot),
        Err(refusal) => {
            entry.refuse(&refusal, None);
            refusal.response().map(Either::Left)
        }
    }
}

/// Checks who asks, what for, and whether the budget allows it. Nothing of the body is read.
fn admit<'p>(shared: &Shared, peer: &'p Peer, parts: &Parts) -> Result<Admitted<'p>, Refusal> {
    let bearer = peer.bearer.bytes();
    // All that was shown is compared, so that the time tells nothing.
    let known = headers::shown_bearers(&parts.headers)
        .fold(subtle::Choice::from(0), |any, shown| any | shown.ct_eq(bearer));
    if !bool::from(known) {
        return Err(Refusal::Bearer);
    }
    let (name, path) = split(parts.uri.path())?;
    let service = peer.services.iter().find(|service| service.name == name).ok_or(Refusal::Route)?;
    if !service.allows(&parts.method, path) {
        return Err(Refusal::Route);
    }
    shared.ledger.afford()?;
    let base = service.url.path().trim_end_matches('/');
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let target =
        format!("{base}{path}{query}").parse().map_err(|_| Refusal::Malformed("the target is not a path"))?;
    let websocket =
        service.websocket && parts.method == Method::GET && headers::asks_for_websocket(&parts.headers);
    Ok(Admitted {
        service,
        target,
        handshake: if websocket { Handshake::WebSocket } else { Handshake::None },
    })
}

/// Sends the request, and once more if the service refused a login that could be renewed.
async fn forward(
    shared: &Shared,
    admitted: &Admitted<'_>,
    parts: &Parts,
    body: Incoming,
    entry: &mut Entry,
) -> Result<Answered, Refusal> {
    let credential = &admitted.service.credential;
    let intake = Intake::new(body, &shared.limits);
    let progress = intake.progress();
    intake.check_length()?;
    // A body that is passed on is bounded by the wait for the answer.
    let load = timeout(shared.limits.first_byte, intake.load(shared.limits.repeatable)).await;
    let load = load.unwrap_or(Err(Refusal::Slow))?;
    let grant = credential.grant(&shared.upstream).await?;
    let (body, whole) = match load {
        Load::Whole(bytes) => (Either::Left(Full::new(bytes.clone())), Some(bytes)),
        Load::Stream(intake) => (Either::Right(intake), None),
    };
    entry.upload = Some(Arc::clone(&progress));
    let answered = send(shared, admitted, parts, &grant, body, &progress).await?;
    if answered.response.status() != StatusCode::UNAUTHORIZED || grant.version.is_none() {
        return Ok(answered);
    }
    credential.reject(&grant, &shared.upstream);
    // A body that is gone cannot be sent again; the client will, and then finds a new token.
    let Some(bytes) = whole else { return Ok(answered) };
    let renewed = credential.grant(&shared.upstream).await?;
    if renewed.version == grant.version {
        return Ok(answered);
    }
    drop(answered);
    send(shared, admitted, parts, &renewed, Either::Left(Full::new(bytes)), &progress).await
}

async fn send(
    shared: &Shared,
    admitted: &Admitted<'_>,
    parts: &Parts,
    grant: &Grant,
    body: Either<Full<Bytes>, Intake>,
    progress: &Progress,
) -> Result<Answered, Refusal> {
    let url = &admitted.service.url;
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = admitted.target.clone();
    *request.headers_mut() = parts.headers.clone();
    let host = HeaderValue::from_str(&url.authority()).map_err(|_| Refusal::Credential)?;
    request.headers_mut().insert(HOST, host);
    headers::add_credential(request.headers_mut(), grant)?;
    let opened = shared.upstream.open(url).await.map_err(|error| Refusal::Dial(error.to_string()))?;
    let Opened { mut sender, running } = opened;
    match timeout(shared.limits.first_byte, sender.send_request(request)).await {
        Ok(Ok(response)) => Ok(Answered { response, running }),
        Ok(Err(error)) => Err(progress.fault().unwrap_or_else(|| Refusal::Upstream(error.to_string()))),
        Err(_late) => Err(Refusal::Silent),
    }
}

/// The answer as the client gets it.
fn pass_on(
    shared: &Shared,
    admitted: &Admitted<'_>,
    answered: Answered,
    mut entry: Entry,
    client: OnUpgrade,
    slot: &Slot,
) -> Answer {
    let Answered { mut response, running } = answered;
    entry.status = Some(response.status());
    let id = ["request-id", "x-request-id"].into_iter().find_map(|name| response.headers().get(name));
    if let Some(id) = id.and_then(|id| id.to_str().ok()) {
        entry.identify(id);
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        if admitted.handshake == Handshake::None {
            let refusal = Refusal::Upstream("it changed the protocol unasked".to_owned());
            entry.refuse(&refusal, None);
            return refusal.response().map(Either::Left);
        }
        headers::clean_answer(response.headers_mut(), Handshake::WebSocket);
        let service = hyper::upgrade::on(&mut response);
        let tunnel = Tunnel { client, service, running, entry };
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
        return response.map(|_nothing| Either::Right(Either::Right(Empty::new())));
    }
    headers::clean_answer(response.headers_mut(), Handshake::None);
    let meter = Meter::new(response.headers().get(CONTENT_TYPE));
    response.map(|body| Either::Right(Either::Left(Outlet::new(body, meter, entry, running, &shared.limits))))
}
