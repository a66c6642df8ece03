//! A bounded reader of git's configuration syntax.
//!
//! Only for looking at a configuration that somebody else wrote: what it includes (before the library
//! follows it) and which drivers it names (for warnings). Nothing that it says is ever obeyed.

use std::path::{Path, PathBuf};

use crate::files::{self, Small};

/// Configuration files above this size are not sane.
pub(crate) const CONFIG_CAP: u64 = 1024 * 1024;

/// One setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Lower case.
    pub(crate) section: String,
    /// As written.
    pub(crate) subsection: Option<String>,
    /// Lower case.
    pub(crate) key: String,
    /// `None` for a key without `=`.
    pub(crate) value: Option<String>,
}

impl Setting {
    /// `section.subsection.key`.
    pub(crate) fn name(&self) -> String {
        match &self.subsection {
            Some(sub) => format!("{}.{sub}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    fn is_include(&self) -> bool {
        matches!(self.section.as_str(), "include" | "includeif") && self.key == "path"
    }
}

/// Reads settings; `None` when the text does not follow the syntax.
pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<Setting>> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut reader = Reader { chars: text.chars().peekable() };
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    while let Some(c) = reader.chars.next() {
        match c {
            c if c.is_whitespace() => {}
            '#' | ';' => reader.skip_line(),
            '[' => section = Some(reader.section()?),
            c if c.is_ascii_alphabetic() => {
                let (name, subsection) = section.clone()?;
                let (key, value) = reader.setting(c)?;
                settings.push(Setting { section: name, subsection, key, value });
                if settings.len() > 20_000 {
                    return None;
                }
            }
            _ => return None,
        }
    }
    Some(settings)
}

struct Reader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
}

impl Reader<'_> {
    fn skip_line(&mut self) {
        for c in self.chars.by_ref() {
            if c == '\n' {
                break;
            }
        }
    }

    fn section(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.chars.next()? {
                ']' => {
                    // The old form `[a.b]` is the subsection `b` in lower case.
                    let name = name.to_lowercase();
                    return Some(match name.split_once('.') {
                        Some((section, sub)) => (section.to_owned(), Some(sub.to_owned())),
                        None => (name, None),
                    });
                }
                c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => name.push(c),
                ' ' | '\t' => break,
                _ => return None,
            }
        }
        while self.chars.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
        if self.chars.next()? != '"' {
            return None;
        }
        let mut sub = String::new();
        loop {
            match self.chars.next()? {
                '"' => break,
                '\\' => sub.push(self.chars.next().filter(|c| *c != '\n')?),
                '\n' => return None,
                c => sub.push(c),
            }
        }
        (self.chars.next()? == ']').then(|| (name.to_lowercase(), Some(sub)))
    }

    fn setting(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut key = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            key.push(c.to_ascii_lowercase());
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t' | '\r')).is_some() {}
        match self.chars.next() {
            None | Some('\n') => Some((key, None)),
            Some('#' | ';') => {
                self.skip_line();
                Some((key, None))
            }
            Some('=') => Some((key, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let mut out = String::new();
        let mut kept = 0;
        let mut quoted = false;
        loop {
            match self.chars.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some('"') => {
                    quoted = !quoted;
                    kept = out.len();
                }
                Some('\\') => {
                    match self.chars.next()? {
                        '\n' => continue,
                        '\r' => {
                            self.chars.next_if_eq(&'\n')?;
                            continue;
                        }
                        'n' => out.push('\n'),
                        't' => out.push('\t'),
                        'b' => out.push('\u{8}'),
                        c @ ('"' | '\\') => out.push(c),
                        _ => return None,
                    }
                    kept = out.len();
                }
                Some(c) if !quoted && c.is_whitespace() => {
                    if !out.is_empty() {
                        out.push(c);
                    }
                }
                Some(c) => {
                    out.push(c);
                    kept = out.len();
                }
            }
        }
        out.truncate(kept);
        Some(out)
    }
}

/// Follows the includes of a configuration as the library would, and returns the first place that is
/// not a plain small file. The library opens includes blindly: a FIFO there would stop us for ever.
pub(crate) fn unsafe_include(config: &Path) -> Option<(PathBuf, String)> {
    let mut todo = vec![(config.to_owned(), 0_u32)];
    let mut seen = 0;
    while let Some((path, depth)) = todo.pop() {
        seen += 1;
        if depth > 10 || seen > 64 {
            return Some((path, "an include nested too deeply".to_owned()));
        }
        // The operator's own files may be symlinks: what counts is what the link leads to.
        let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let bytes = match files::read_small(&target, CONFIG_CAP) {
            Ok(Small::Absent) => continue,
            Ok(Small::Bytes(bytes)) => bytes,
            Ok(Small::TooLarge) => return Some((path, "larger than 1 MiB".to_owned())),
            Ok(Small::Special(what)) => return Some((path, what.to_owned())),
            Err(error) => return Some((path, format!("unreadable ({error})"))),
        };
        // The library will say what is wrong with a text that does not parse.
        for setting in parse(&bytes).unwrap_or_default() {
            let Some(value) = setting.value.as_deref().filter(|_| setting.is_include()) else { continue };
            if value.is_empty() || value.starts_with('~') {
                // Below the operator's home: not writable for agents.
                continue;
            }
            let base = path.parent().unwrap_or(Path::new("/"));
            todo.push((base.join(value), depth + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<(String, Option<String>)> {
        parse(text.as_bytes()).unwrap().into_iter().map(|s| (s.name(), s.value)).collect()
    }

    #[test]
    fn sections_subsections_quotes_comments_and_continuations_are_understood() {
        let text = "# top\n[core] bare = false ; x\n\teditor = \"a # b\" c  \n[Filter \"we\\\"ird\"]\n clean=\
                    one\\\ntwo\n[alias]\n\tx\n[branch.MAIN]\nmerge = y";
        assert_eq!(
            values(text),
            [
                ("core.bare".to_owned(), Some("false".to_owned())),
                ("core.editor".to_owned(), Some("a # b c".to_owned())),
                ("filter.we\"ird.clean".to_owned(), Some("onetwo".to_owned())),
                ("alias.x".to_owned(), None),
                ("branch.main.merge".to_owned(), Some("y".to_owned())),
            ]
        );
    }

    #[test]
    fn what_breaks_the_syntax_is_refused() {
        for bad in ["x = 1", "[a", "[a]\n!x", "[a]\nx = \"open", "[a]\nx = \\q", "[a \"b\" ]\n"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn an_include_that_is_a_fifo_is_found_without_opening_it() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        std::fs::write(dir.path().join("a"), "[include]\npath = b\n").unwrap();
        std::fs::write(dir.path().join("b"), format!("[includeIf \"x\"] path = {}", fifo.display())).unwrap();
        let (path, what) = unsafe_include(&dir.path().join("a")).unwrap();
        assert_eq!(path, fifo);
        assert_eq!(what, "a FIFO");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }
    }
}
