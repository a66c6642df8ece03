//! How a tool is led to a service of models by a proxy of ours: it gets the proxy's address and a bearer that is worth
//! nothing elsewhere, a directory of its own in place of the operator's, and no login.

use serde_json::Value;

/// Where a tool is led.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// The service, as the proxy names it.
    pub service: &'a str,
    /// The proxy: scheme, host and port.
    pub proxy: &'a str,
    /// What it shows the proxy.
    pub bearer: &'a str,
    /// The directory that it has in place of the operator's.
    pub state: &'a str,
}

/// A service that a tool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// As the proxy names it.
    pub service: &'static str,
    /// The operator's own address of it; absent: the usual one.
    pub url: Option<String>,
}

/// What the operator says to a tool besides its command line.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    /// A variable of the environment, where it is set and not empty.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// The tool's settings file, as [`SettingsFile`] names it.
    pub settings: Option<&'a str>,
}

/// The file in which an operator keeps the settings of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsFile {
    /// Its name.
    pub name: &'static str,
    /// The variable that names its directory.
    pub variable: &'static str,
    /// The usual directory, below the home directory.
    pub below: &'static str,
}

impl Wanted {
    pub(crate) fn usual(service: &'static str) -> Self {
        Self { service, url: None }
    }
}

/// Whether a proxy may send a credential there: over TLS, or to this machine.
pub(crate) fn is_safe(url: &str) -> bool {
    let rest = url.strip_prefix("http://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let host = host
        .rsplit_once(':')
        .map_or(host, |(host, port)| if port.bytes().all(|b| b.is_ascii_digit()) { host } else { "" });
    url.starts_with("https://") || ["127.0.0.1", "localhost", "[::1]"].contains(&host)
}

/// The members of a JSON object that have these names, as an object again.
pub(crate) fn members(text: &str, names: &[&str]) -> Value {
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), all.get(name)?.clone())));
    Value::Object(kept.collect())
}

/// The lines of a TOML file's first table that set one of these keys to a text, a number or a truth value, as they
/// stand. A text of several lines is none.
pub(crate) fn first_keys<'t>(text: &'t str, names: &[&str]) -> Vec<(&'t str, &'t str)> {
    let first = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    first
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.trim().trim_matches('"'), value.trim()))
        .filter(|(name, value)| names.contains(name) && is_scalar(value))
        .collect()
}

fn is_scalar(value: &str) -> bool {
    let quoted = |quote| {
        value
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
            .is_some_and(|inner| !inner.is_empty() && !inner.contains(['"', '\'', '\\']))
    };
    quoted('"')
        || quoted('\'')
        || !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_goes_over_tls_or_to_this_machine() {
        for good in ["https://x.example/v1", "http://127.0.0.1:9", "http://localhost/a", "http://[::1]:80"] {
            assert!(is_safe(good), "{good}");
        }
        for bad in
            ["http://x.example", "http://127.0.0.1.evil", "http://localhost:x@evil", "ftp://127.0.0.1", ""]
        {
            assert!(!is_safe(bad), "{bad}");
        }
    }

    #[test]
    fn of_settings_only_what_is_asked_for_is_taken() {
        let kept =
            members(r#"{"model": "opus", "hooks": {"x": 1}, "env": {"A": "b"}}"#, &["model", "language"]);
        assert_eq!(kept.to_string(), r#"{"model":"opus"}"#);
        assert_eq!(members("no json", &["model"]).to_string(), "{}");
        let toml = "# model = \"no\"\nmodel = \"gpt-x\"\nmodel_reasoning_effort='high'\nnotify = [\"x\"]\n\
            web = true\nodd = \"a\" # b\n[profiles.x]\nmodel = \"other\"\n";
        let kept = first_keys(toml, &["model", "model_reasoning_effort", "web", "notify", "odd"]);
        assert_eq!(kept, [("model", "\"gpt-x\""), ("model_reasoning_effort", "'high'"), ("web", "true")]);
    }
}
