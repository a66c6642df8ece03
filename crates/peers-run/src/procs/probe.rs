//! A peer's program outside of a loop: one command line of it, or one prompt.

use std::rc::Rc;
use std::time::Duration;

use peers_core::machine::{Ceiling, Event, RunPeer};
use peers_model::TickNo;
use peers_model::config::PeerSpec;
use peers_model::outcome::PeerExit;
use peers_sys::error::chain;
use peers_sys::spawn::RawExit;

use super::behind::as_peer;
use super::command::{Company, Running};
use super::gate_log::GateLog;
use super::gates::Cancel;
use super::{Book, OpenBook, RealProcs, Site, channel};
use crate::ports::Procs as _;

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit code; absent where a signal or its time limit ended it.
    pub code: Option<i32>,
    /// It was ended at its time limit.
    pub timed_out: bool,
    /// Standard output, then standard error, secrets hidden.
    pub text: String,
}

/// Runs a command line in the environment of this peer. Used inside a `LocalSet`, as [`RealProcs`] is.
///
/// # Errors
/// [`String`].
pub async fn program(
    site: &Rc<Site>,
    peer: &PeerSpec,
    argv: Vec<String>,
    limit: Duration,
) -> Result<Said, String> {
    let spawn = as_peer(site, peer, argv)?;
    let running = Running { site, tick: TickNo(0), limit, cancel: Cancel::never(), company: Company::Alone };
    let mut log = GateLog::new(None, "", String::new(), 0);
    let finished = running.run(&spawn, &mut log).await.map_err(|error| chain(&error))?;
    let code = match finished.exit {
        Some(RawExit::Code(code)) if !finished.timed_out => Some(code),
        Some(RawExit::Code(_) | RawExit::Signal(_)) | None => None,
    };
    if finished.stub.is_some() {
        return Err(finished.stderr.text().trim().to_owned());
    }
    let text = format!("{}\n{}", finished.stdout.text(), finished.stderr.text());
    Ok(Said { code, timed_out: finished.timed_out, text })
}

/// Sends one prompt by the launcher of the loop and waits for the end of the turn. An error is no failure of
/// the peer's. Used inside a `LocalSet`, as [`RealProcs`] is.
///
/// # Errors
/// [`String`].
pub async fn ask(site: Rc<Site>, book: Book, peer: &PeerSpec, prompt: &str) -> Result<PeerExit, String> {
    let (events, mut arriving) = channel();
    let mut procs = RealProcs::new(site, OpenBook::new(book), events);
    procs.run_peer(&RunPeer {
        tick: TickNo(0),
        peer: peer.name.clone(),
        role: peer.role,
        prompt: prompt.to_owned(),
        runtime_left_s: None,
        ceiling: Ceiling::default(),
        skeptic: false,
    });
    let ended = loop {
        match arriving.recv().await {
            Some(Event::PeerExited(exit)) => break Ok(*exit),
            Some(Event::Failed { detail, .. }) => break Err(detail),
            Some(_) => {}
            None => break Err("its end was lost".to_owned()),
        }
    };
    procs.finish().await;
    ended
}
