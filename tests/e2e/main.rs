//! One test binary for all end-to-end tests: the real `peers`, real git, scripted peers.

#[cfg(test)]
mod cli_basics;
#[cfg(test)]
mod cli_checks;
#[cfg(test)]
mod cli_ci;
#[cfg(test)]
mod cli_demo;
#[cfg(test)]
mod cli_doctor;
#[cfg(test)]
mod cli_goals;
#[cfg(test)]
mod cli_hints;
#[cfg(test)]
mod cli_hooks;
#[cfg(test)]
mod cli_init;
#[cfg(test)]
mod cli_land;
#[cfg(test)]
mod cli_money;
#[cfg(test)]
mod cli_operator;
#[cfg(test)]
mod cli_outside;
#[cfg(test)]
mod cli_prompt;
#[cfg(test)]
mod cli_run;
#[cfg(test)]
mod cli_schema;
#[cfg(test)]
mod cli_signals;
#[cfg(test)]
mod cli_store;
#[cfg(test)]
mod cli_streams;
#[cfg(test)]
mod cli_tmux;
#[cfg(test)]
mod cli_verify;
#[cfg(test)]
mod cli_views;
#[cfg(test)]
mod ctl_budget;
#[cfg(test)]
mod ctl_faults;
#[cfg(test)]
mod ctl_fleet;
#[cfg(test)]
mod ctl_golden;
#[cfg(test)]
mod ctl_ground;
#[cfg(test)]
mod ctl_hostile;
#[cfg(test)]
mod ctl_live;
#[cfg(test)]
mod ctl_new;
#[cfg(test)]
mod ctl_rails;
#[cfg(test)]
mod ctl_recycled;
#[cfg(test)]
mod ctl_start;
#[cfg(test)]
mod ctl_stop;
#[cfg(test)]
mod ctl_views;
#[cfg(test)]
mod ctl_watch;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod support;
