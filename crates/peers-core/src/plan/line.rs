//! What lines of a plan are made of: keys, values, lists, switches.

/// Whether the text may be a key.
fn is_key(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The two sides of `key: value`.
pub(super) fn pair(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    is_key(key).then_some((key, value.trim()))
}

/// The items of `a, b` or `[a, b]`. Brackets that belong to an item, as in `[id]/a.ts, b/[id]`, stay.
pub(super) fn list(value: &str) -> impl Iterator<Item = &str> {
    let inner = if is_wrapped(value) { value.get(1..value.len() - 1).unwrap_or(value) } else { value };
    inner.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Whether the first bracket is not closed before the last character, which closes one.
fn is_wrapped(value: &str) -> bool {
    let mut depth = 0_usize;
    let closes = value.char_indices().find_map(|(at, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at)
    });
    value.starts_with('[') && value.ends_with(']') && closes.is_none_or(|at| at + 1 == value.len())
}

/// What a switch says.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "y" | "on" | "1" => Some(true),
        "false" | "no" | "n" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Whether the whole command stands between quotes, which the shell would take for the name of a program.
pub(super) fn is_quoted(command: &str) -> bool {
    let inner = |quote: char| command.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    ['"', '\'']
        .into_iter()
        .any(|quote| inner(quote).is_some_and(|text| text.contains(' ') && !text.contains(quote)))
}

/// Why no file of the repository has this path or glob.
pub(super) fn outside(path: &str) -> bool {
    path.starts_with('/') || path.split('/').any(|part| part == "..")
}
