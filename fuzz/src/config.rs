//! `config.yaml`, read as `peers` reads it.

use std::collections::BTreeSet;

use peers_model::config::Config;
use peers_store::load::{Source, decode, load_config};

use crate::problems;

/// Puts one file through everything.
pub fn check(data: &[u8]) {
    let text = match decode(Source::Config, data) {
        Ok(text) => text,
        Err(error) => {
            assert!(std::str::from_utf8(data).is_err(), "UTF-8 is refused");
            return problems::tellable(&String::from_utf8_lossy(data), &error);
        }
    };
    let read = load_config(text);
    match (&read, &load_config(text)) {
        (Ok(a), Ok(b)) => assert_eq!(format!("{a:?}"), format!("{b:?}"), "reading is deterministic"),
        (Err(a), Err(b)) => assert_eq!(a, b, "refusing is deterministic"),
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => panic!("one text is read and refused"),
    }
    match read {
        Ok(config) => usable(&config),
        Err(error) => problems::tellable(text, &error),
    }
}

/// What was let through has what the loop relies on.
fn usable(config: &Config) {
    assert!(config.check().is_ok());
    let names: BTreeSet<&str> = config.peers.iter().map(|peer| peer.name.as_str()).collect();
    assert!(names.len() >= 2 && names.len() == config.peers.len(), "peers: {names:?}");
    for peer in &config.peers {
        assert!(!peer.argv.is_empty() && !peer.argv.iter().any(|arg| arg.contains('\0')));
    }
    let health = &config.health;
    for pattern in [&health.error_patterns, &health.halt_patterns].into_iter().flatten().flatten() {
        let compiled = |unicode| regex::bytes::RegexBuilder::new(pattern).unicode(unicode).build().is_ok();
        assert!(compiled(false) || compiled(true), "{pattern}");
    }
}
