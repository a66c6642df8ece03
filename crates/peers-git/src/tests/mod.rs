//! Tests against real repositories, made with the `git` program in a scrubbed environment.

mod facts;
mod first;
mod fixture;
mod guard;
mod hostile;
mod hostile_all;
mod import;
mod index;
mod mended;
mod open;
mod reset;
mod salvage;
mod state;
mod store;
mod turngit;
mod unfollowed;
mod way;
mod worktree;
mod write;

use fixture::{Fixture, command, cut_short, fifo, git_in, link, program, put, substrate, tomorrow};
