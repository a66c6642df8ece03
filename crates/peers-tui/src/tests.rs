//! What stands on the screen, and what keys do.

mod acts;
mod panics;
mod sample;
mod screens;
