//! The model that codex is set to in its own configuration.

use peers_modes::peer;
use peers_store::load;
use peers_sys::SafeDir;
use peers_sys::env::Env;
use peers_sys::term;

use super::host;

/// Bytes of its configuration that are read.
const MOST: u64 = 1024 * 1024;

/// The configuration with codex's own model in each of its entries that has none, and a line that says so;
/// `None` where there is no such entry, or codex names no model.
pub(super) fn pinned(config: &str, env: &Env) -> Option<(String, String)> {
    let path = host::codex_dir(env)?.join("config.toml");
    // The operator's dotfiles may be links.
    let real = path.canonicalize().ok()?;
    let text = SafeDir::open_shared(real.parent()?).ok()?.read_text(real.file_name()?, MOST).ok()?;
    let model = model(&text)?;
    let peers = load::load_config(config).ok()?.peers;
    let unset = peers.iter().filter(|peer| peer.tool_name() == "codex" && peer.model.is_none());
    let mut pinned = config.to_owned();
    for entry in unset {
        pinned = peer::set(&pinned, entry.name.as_str(), "model", &model)?;
    }
    let new = pinned != config && load::load_config(&pinned).is_ok();
    let said = format!(
        "codex is pinned to `{}`, the model in {}, so that its turns have a price (`model` in .peers/config.yaml)",
        term::line(&model, 80),
        term::inline(&path.to_string_lossy())
    );
    new.then_some((pinned, said))
}

/// The model that a configuration of codex chooses: that of its profile, else its own.
fn model(text: &str) -> Option<String> {
    let profile = text_of(text, "", "profile");
    let of_profile = profile.and_then(|profile| {
        let [plain, quoted] = [format!("[profiles.{profile}]"), format!("[profiles.\"{profile}\"]")];
        text_of(text, &plain, "model").or_else(|| text_of(text, &quoted, "model"))
    });
    of_profile.or_else(|| text_of(text, "", "model")).filter(|model| !model.is_empty())
}

/// The text of `key` below a header of TOML, `""` for what stands before the first. A text with an escape in it
/// or over several lines is none.
fn text_of(text: &str, header: &str, key: &str) -> Option<String> {
    let (mut table, mut open) = ("", None);
    for line in text.lines().map(str::trim) {
        let of_text = open.is_some();
        for mark in ["\"\"\"", "'''"] {
            if line.matches(mark).count() % 2 == 1 && open.is_none_or(|open| open == mark) {
                open = if open.is_some() { None } else { Some(mark) };
            }
        }
        if of_text || open.is_some() {
            continue;
        }
        if line.starts_with('[') {
            table = line.split_once('#').map_or(line, |(head, _)| head).trim();
        } else if table == header
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            let value = value.trim();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (value, _) = value.get(1..)?.split_once(quote)?;
            return (!value.contains('\\')).then(|| value.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_the_profile_goes_before_that_of_the_top() {
        let top = "# mine\nmodel = \"gpt-5-codex\" # fast\n";
        let profiles = "[profiles.deep] # slow\nmodel = 'o3'\n[profiles.\"a b\"]\nmodel=\"gpt-5\"\n[tui]\nmodel = \"x\"\n";
        for (text, expected) in [
            (format!("{top}{profiles}"), Some("gpt-5-codex")),
            (format!("profile = \"deep\"\n{top}{profiles}"), Some("o3")),
            (format!("profile = \"a b\"\n{profiles}"), Some("gpt-5")),
            (format!("profile = \"gone\"\n{top}{profiles}"), Some("gpt-5-codex")),
            (format!("instructions = \"\"\"\nmodel = \"no\"\n\"\"\"\n{top}"), Some("gpt-5-codex")),
            (profiles.to_owned(), None),
        ] {
            assert_eq!(model(&text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn hostile_text_is_no_model() {
        for text in [
            "model",
            "model =",
            "model = \"",
            "model = '",
            "model = 5",
            "model = \"\"",
            "model = \"a\\u0041\"",
            "=",
            "model = é",
            "model = \"\"\"x\n",
        ] {
            assert_eq!(model(text), None, "{text}");
        }
    }
}
