//! The journals of many loops, followed as one stream.

use std::collections::BTreeMap;

use peers_console::error::CommandError;
use peers_fleet::Project;
use peers_model::{Timestamp, exit};
use peers_place::Place;
use peers_store::{FsDisk, JournalError};
use peers_sys::clock;
use peers_sys::env::Env;
use peers_view::{Feed, FeedItem};

/// Records that are brought into order together.
const TOGETHER: usize = 10_000;

/// What came: when, in which project, what.
pub(crate) type Item = (Timestamp, String, FeedItem);

/// The journals that are followed.
#[derive(Debug)]
pub(crate) struct Journals {
    /// Records before the end of each journal.
    lines: usize,
    feeds: BTreeMap<String, Followed>,
    /// Why journals cannot be read, as it was told.
    unread: BTreeMap<String, String>,
}

/// A journal that is followed.
#[derive(Debug)]
struct Followed {
    path: String,
    /// Where it was left; known once it could be read.
    feed: Option<Feed>,
    /// Opened anew after it could not be read.
    disk: Option<FsDisk>,
}

impl Journals {
    /// From so many records before the end of each.
    pub(crate) fn new(lines: usize) -> Self {
        Self { lines, feeds: BTreeMap::new(), unread: BTreeMap::new() }
    }

    /// What has come, oldest first, and of each journal that cannot be read why, once.
    pub(crate) fn poll(&mut self, env: &Env, projects: &[&Project]) -> (Vec<Item>, Vec<(String, String)>) {
        let Self { lines, feeds, unread } = self;
        let projects: BTreeMap<&str, &Project> =
            projects.iter().map(|project| (project.name.as_str(), *project)).collect();
        // What the registry has elsewhere by now is another journal.
        feeds.retain(|name, followed| {
            projects.get(name.as_str()).is_some_and(|project| followed.path == project.path)
        });
        unread.retain(|name, _| projects.contains_key(name.as_str()));
        let (mut items, mut news) = (Vec::new(), Vec::new());
        for (name, project) in projects {
            let followed = feeds.entry(name.to_owned()).or_insert_with(|| Followed {
                path: project.path.clone(),
                feed: None,
                disk: None,
            });
            let Err(error) = followed.poll(env, *lines, project, &mut items) else {
                unread.remove(name);
                continue;
            };
            followed.disk = None;
            let why = CommandError::of(exit::INVALID, &error).summary();
            if unread.insert(name.to_owned(), why.clone()).is_none_or(|before| before != why) {
                news.push((name.to_owned(), why));
            }
        }
        items.sort_by_key(|(at, ..)| *at);
        (items, news)
    }

    /// Whether one of them cannot be read.
    pub(crate) fn some_unread(&self) -> bool {
        !self.unread.is_empty()
    }
}

impl Followed {
    /// Brings what has come since the last look.
    fn poll(
        &mut self,
        env: &Env,
        lines: usize,
        project: &Project,
        items: &mut Vec<Item>,
    ) -> Result<(), JournalError> {
        if self.disk.is_none() {
            let opened = Place::locate(std::path::Path::new(&self.path), env)
                .and_then(|place| place.expect(project.project_id.as_ref()))
                .and_then(|place| place.open_view_disk());
            // One that cannot be opened has no journal to be followed; its row says so.
            self.disk = opened.ok();
        }
        let Some(disk) = &mut self.disk else { return Ok(()) };
        let feed = match &mut self.feed {
            Some(feed) => feed,
            slot => slot.insert(Feed::tail(disk, lines)?),
        };
        loop {
            let polled = feed.poll(disk)?;
            items.extend(polled.items.into_iter().map(|item| {
                let at = match &item {
                    FeedItem::Line(line) => line.ts,
                    FeedItem::Unreadable { .. } | FeedItem::Replaced => clock::now(),
                };
                (at, project.name.to_string(), item)
            }));
            if !polled.more || items.len() > TOGETHER {
                return Ok(());
            }
        }
    }
}
