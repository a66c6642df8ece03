//! `api-stable`: the public names and their parameters are those of the base, or a commit says why not (`modes.md` §3.1).

use std::collections::{BTreeMap, BTreeSet};

use peers_code::{CodeMap, Entry};
use peers_model::bug::reason_chars;
use peers_model::check::{self, Args};
use peers_model::trailer::Message;

use crate::check::Check;
use crate::codemap;
use crate::cx::{CheckCx, CouldNot};
use crate::report::{Finding, Report, Verdict};

pub(crate) const CHECK: Check = Check {
    name: check::API_STABLE.name,
    about: "What others can use is there as before, or a commit says how to go on without it",
    args: check::API_STABLE.args,
    run: |cx, args: &Args| judge(cx, args.value("additions") == Some("allow")).unwrap_or_else(Report::from),
};

/// Characters that say how others go on.
const LEAST: usize = 10;

fn judge(cx: &CheckCx, additions: bool) -> Result<Report, CouldNot> {
    let Some(base) = cx.base() else {
        return Err(CouldNot {
            what: "there is no base to compare with".to_owned(),
            hint: Some("name one: `--base REF`".to_owned()),
        });
    };
    let (was, is) = (codemap::real(cx, base)?, codemap::real(cx, cx.head())?);
    if was.entries.is_empty()
        && is.entries.is_empty()
        && is.unreadable.is_empty()
        && let Some(report) = crate::scan::nothing_to_scan(cx, 0)
    {
        return Ok(report);
    }
    // What nobody could read before is nobody's doing of now.
    let (known, unreadable): (Vec<_>, Vec<_>) = is
        .unreadable
        .iter()
        .cloned()
        .partition(|(path, _)| was.unreadable.iter().any(|(old, _)| old == path));
    let (was, is) = (by_id(was), by_id(is));
    let said = announced(cx)?;
    let mut findings = Vec::new();
    let mut add = |entry: &Entry, kind: &'static str, what: &str| {
        if !said.contains(&entry.id) && !said.contains(codemap::last(&entry.id)) {
            let line = u64::try_from(entry.line).ok();
            findings.push(Finding::at(&entry.file, line, kind, &format!("`{}` {what}", entry.id), None));
        }
    };
    for (id, before) in &was {
        match is.get(id) {
            None => add(before, "removed", "is gone"),
            Some(now) if now.kind != before.kind => {
                let (was, is) = (codemap::kind_of(before), codemap::kind_of(now));
                add(now, "changed", &format!("was a {was} and is a {is}"));
            }
            Some(now) if now.signature != before.signature => {
                let shown = |entry: &Entry| entry.signature.clone().unwrap_or_default();
                add(now, "changed", &format!("was `{}` and is `{}`", shown(before), shown(now)));
            }
            Some(_) => {}
        }
    }
    for (id, now) in is.iter().filter(|_| !additions) {
        if !was.contains_key(id) {
            add(now, "added", "is new");
        }
    }
    findings.extend(unreadable.iter().map(|(path, why)| Finding::at(path, None, "unreadable", why, None)));
    let mut report = match findings.len() {
        0 => Report::new(
            Verdict::Pass,
            if is.len() == 1 { "1 public name".to_owned() } else { format!("{} public names", is.len()) },
        ),
        n => Report::new(Verdict::Fail, format!("{n} of {} public names changed unannounced", is.len())),
    };
    report.count("names", is.len());
    report.hint = (!findings.is_empty()).then(|| {
        "put it back, or announce it in a commit with the trailer `Breaking-API: <name>: <how to go on>`; \
         `--additions allow` lets new names be"
            .to_owned()
    });
    report.findings = findings;
    let told = known.iter().map(|(path, why)| format!("{path} is not compared, as at the base: {why}"));
    report.notes.extend(told);
    Ok(report)
}

/// Modules come and go with their files; what counts is what is in them.
fn by_id(map: CodeMap) -> BTreeMap<String, Entry> {
    let named = map.entries.into_iter().filter(|entry| entry.kind != peers_code::Kind::Module);
    named.map(|entry| (entry.id.clone(), entry)).collect()
}

/// The names that commits since the base announce.
fn announced(cx: &CheckCx) -> Result<BTreeSet<String>, CouldNot> {
    let mut names = BTreeSet::new();
    for commit in cx.commits()? {
        let message = Message::parse(&commit.message);
        for value in message.trailers.all("Breaking-API") {
            if let Some((name, how)) = value.split_once(": ")
                && reason_chars(how) >= LEAST
            {
                names.insert(name.trim().trim_matches('`').to_owned());
            }
        }
    }
    Ok(names)
}
