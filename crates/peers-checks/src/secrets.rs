//! What a secret looks like: the shapes of keys and tokens, by who gives them out.
//!
//! Each shape has an anchor, a text that stands in every secret of it; only around an anchor its pattern is tried.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::Regex;

/// So far before its anchor a secret may begin, and so far behind it may end.
const BEFORE: usize = 80;
const BEHIND: usize = 400;

/// How a pattern is written that is tried at one place.
const BEGINS: &str = "(?-u)^";

/// Label, anchor, pattern. A pattern that begins or ends within a word does not count.
const SHAPES: &[(&str, &str, &str)] = &[
    ("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("atlassian-token", "ATATT3", r"ATATT3[A-Za-z0-9_=-]{50,}"),
    ("aws-key", "AKIA", r"AKIA[A-Z0-9]{16}"),
    ("aws-key", "ASIA", r"ASIA[A-Z0-9]{16}"),
    ("azure-secret", "8Q~", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}"),
    ("azure-storage-key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/]{86}=="),
    ("bitbucket-token", "ATBB", r"ATBB[A-Za-z0-9]{32,}"),
    ("contentful-token", "CFPAT-", r"CFPAT-[A-Za-z0-9_-]{40,}"),
    ("crates-token", "cio", r"cio[A-Za-z0-9]{32}"),
    ("databricks-token", "dapi", r"dapi[0-9a-f]{32}"),
    ("digitalocean-token", "dop_v1_", r"dop_v1_[0-9a-f]{64}"),
    ("digitalocean-token", "doo_v1_", r"doo_v1_[0-9a-f]{64}"),
    ("digitalocean-token", "dor_v1_", r"dor_v1_[0-9a-f]{64}"),
    ("discord-webhook", "/api/webhooks/", r"discord(?:app)?\.com/api/webhooks/[0-9]{15,}/[A-Za-z0-9_-]{50,}"),
    ("docker-token", "dckr_", r"dckr_[po]at_[A-Za-z0-9_-]{20,}"),
    ("doppler-token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{40,}"),
    ("duffel-token", "duffel_", r"duffel_(?:test|live)_[A-Za-z0-9_=-]{40,}"),
    ("dynatrace-token", "dt0c01.", r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("easypost-key", "EZ", r"EZ[AT]K[A-Za-z0-9]{54}"),
    ("facebook-token", "EAAC", r"EAAC[A-Za-z0-9]{60,}"),
    ("figma-token", "figd_", r"figd_[A-Za-z0-9_-]{40,}"),
    ("fly-token", "fm2_", r"fm2_[A-Za-z0-9+/=_-]{60,}"),
    ("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    ("github-token", "ghp_", r"ghp_[A-Za-z0-9]{30,}"),
    ("github-token", "gho_", r"gho_[A-Za-z0-9]{30,}"),
    ("github-token", "ghu_", r"ghu_[A-Za-z0-9]{30,}"),
    ("github-token", "ghs_", r"ghs_[A-Za-z0-9]{30,}"),
    ("github-token", "ghr_", r"ghr_[A-Za-z0-9]{30,}"),
    ("gitlab-token", "glpat-", r"glpat-[A-Za-z0-9_-]{20,}"),
    ("gitlab-token", "glptt-", r"glptt-[0-9a-f]{40}"),
    ("gitlab-token", "gldt-", r"gldt-[A-Za-z0-9_-]{20,}"),
    ("gitlab-token", "glrt-", r"glrt-[A-Za-z0-9_-]{20,}"),
    ("google-client-secret", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_-]{28}"),
    ("google-key", "AIza", r"AIza[A-Za-z0-9_-]{35}"),
    ("google-oauth-token", "ya29.", r"ya29\.[A-Za-z0-9_-]{30,}"),
    ("grafana-token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    ("grafana-token", "glc_", r"glc_[A-Za-z0-9+/]{32,}={0,2}"),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,}"),
    ("heroku-key", "HRKU-", r"HRKU-[A-Za-z0-9_-]{30,}"),
    ("hugging-face-token", "hf_", r"hf_[A-Za-z0-9]{30,}"),
    ("jwt", "eyJ", r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,}"),
    ("lob-key", "live_", r"live_[0-9a-f]{35}"),
    ("mailchimp-key", "-us", r"[0-9a-f]{32}-us[0-9]{1,2}"),
    ("mailgun-key", "key-", r"key-[0-9a-f]{32}"),
    ("mapbox-token", "sk.eyJ", r"sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{15,}"),
    ("netlify-token", "nfp_", r"nfp_[A-Za-z0-9]{36,}"),
    ("new-relic-key", "NRAK-", r"NRAK-[A-Z0-9]{27}"),
    ("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{40,}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("nuget-key", "oy2", r"oy2[a-z0-9]{43}"),
    ("openai-key", "sk-proj-", r"sk-proj-[A-Za-z0-9_-]{20,}"),
    ("openai-key", "sk-svcacct-", r"sk-svcacct-[A-Za-z0-9_-]{20,}"),
    ("openai-key", "sk-admin-", r"sk-admin-[A-Za-z0-9_-]{20,}"),
    ("api-key", "sk-", r"sk-[A-Za-z0-9]{20,}"),
    ("openrouter-key", "sk-or-", r"sk-or-v1-[0-9a-f]{40,}"),
    ("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,}"),
    ("planetscale-token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{32,}"),
    ("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("prefect-key", "pnu_", r"pnu_[A-Za-z0-9]{36}"),
    ("private-key", "-----BEGIN ", r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ("pulumi-token", "pul-", r"pul-[0-9a-f]{40}"),
    ("putty-key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-[0-9]+: "),
    ("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_-]{60,}"),
    ("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    ("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    ("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    ("sentry-token", "sntry", r"sntry[su]_[A-Za-z0-9+/=_-]{50,}"),
    ("shopify-token", "shp", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{16,}"),
    ("slack-token", "xapp-", r"xapp-[0-9]-[A-Z0-9]{8,}-[0-9]{8,}-[A-Za-z0-9]{32,}"),
    (
        "slack-webhook",
        "hooks.slack.com/services/",
        r"hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}",
    ),
    ("sourcegraph-token", "sgp_", r"sgp_[A-Za-z0-9_]{40,}"),
    ("square-token", "sq0", r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}"),
    ("stripe-key", "_live_", r"(?:sk|rk)_live_[A-Za-z0-9]{16,}"),
    ("stripe-key", "_test_", r"(?:sk|rk)_test_[A-Za-z0-9]{16,}"),
    ("stripe-webhook-secret", "whsec_", r"whsec_[A-Za-z0-9+/]{32,}"),
    ("supabase-token", "sbp_", r"sbp_[0-9a-f]{40}"),
    ("tailscale-key", "tskey-", r"tskey-(?:auth|api|client)-[A-Za-z0-9-]{20,}"),
    ("telegram-token", ":AA", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"),
    ("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    ("twilio-key", "SK", r"SK[0-9a-f]{32}"),
    ("typeform-token", "tfp_", r"tfp_[A-Za-z0-9_.=-]{40,}"),
    ("vault-token", "hvs.", r"hvs\.[A-Za-z0-9_-]{24,}"),
    ("vault-token", "hvb.", r"hvb\.[A-Za-z0-9_-]{24,}"),
    ("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,}"),
    ("1password-token", "ops_eyJ", r"ops_eyJ[A-Za-z0-9_-]{100,}"),
    (
        "password-in-url",
        "://",
        r"[a-z][a-z0-9+.-]{1,20}://[^\s:@/'\x22<>{}$]{1,60}:[^\s@/'\x22<>{}$*]{4,100}@[A-Za-z0-9.-]{3,}",
    ),
];

/// Words before a quoted value that make it a secret: `password = "..."`. In lower case.
const WORDS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "auth_token",
    "access_token",
    "private_token",
    "client_secret",
];
/// Parts of values that stand for a secret and are none. In lower case.
const PLACEHOLDERS: [&str; 22] = [
    "example",
    "changeme",
    "change_me",
    "change-me",
    "xxxx",
    "your",
    "<",
    "${",
    "{{",
    "placeholder",
    "dummy",
    "test",
    "fake",
    "sample",
    "secret",
    "password",
    "12345",
    "****",
    "....",
    "none",
    "todo",
    "redacted",
];

struct Shapes {
    anchors: AhoCorasick,
    patterns: Vec<Regex>,
    words: AhoCorasick,
    assigned: Regex,
}

static KNOWN: LazyLock<Shapes> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "constant patterns, compiled in every test run")]
    let regex = |pattern: &str| Regex::new(&format!("(?-u){pattern}")).expect("constant pattern");
    #[expect(clippy::expect_used, reason = "constant texts")]
    let texts = |build: &aho_corasick::AhoCorasickBuilder, texts: Vec<&str>| {
        build.build(texts).expect("constant texts")
    };
    Shapes {
        anchors: texts(
            AhoCorasick::builder().match_kind(aho_corasick::MatchKind::Standard),
            SHAPES.iter().map(|s| s.1).collect(),
        ),
        // One that begins with its anchor is tried at that place alone.
        patterns: SHAPES
            .iter()
            .map(|(_, anchor, pattern)| {
                let begins = pattern.starts_with(&regex::escape(anchor));
                regex(&if begins { format!("^(?:{pattern})") } else { (*pattern).to_owned() })
            })
            .collect(),
        words: texts(AhoCorasick::builder().ascii_case_insensitive(true), WORDS.to_vec()),
        assigned: regex(
            r#"^[A-Za-z0-9_-]{0,20}["']?\s{0,5}(?::=|=>|[:=])\s{0,5}(?:"([^"\s]{6,200})"|'([^'\s]{6,200})')"#,
        ),
    }
});

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    /// What it is.
    pub(crate) label: &'static str,
    /// Its line, from 1.
    pub(crate) line: usize,
    /// Its bytes.
    pub(crate) matched: Vec<u8>,
}

/// The secrets of a file, each place once, in order.
pub(crate) fn find(bytes: &[u8]) -> Vec<Secret> {
    let known = &*KNOWN;
    let mut found: Vec<(usize, usize, &'static str)> = Vec::new();
    for anchor in known.anchors.find_overlapping_iter(bytes) {
        let index = anchor.pattern().as_usize();
        let (Some(pattern), Some((label, ..))) = (known.patterns.get(index), SHAPES.get(index)) else {
            continue;
        };
        let (from, to) = (anchor.start().saturating_sub(BEFORE), (anchor.end() + BEHIND).min(bytes.len()));
        let begins = pattern.as_str().starts_with(BEGINS);
        let from = if begins { anchor.start() } else { from };
        let window = bytes.get(from..to).unwrap_or_default();
        let covers = |at: &regex::bytes::Match<'_>| {
            from + at.start() <= anchor.start() && anchor.end() <= from + at.end()
        };
        if let Some(at) = pattern.find_iter(window).find(covers) {
            let (start, end) = (from + at.start(), from + at.end());
            if !is_within_word(bytes, start, end) && !is_placeholder(label, at.as_bytes()) {
                found.push((start, end, label));
            }
        }
    }
    for word in known.words.find_iter(bytes) {
        let window = bytes.get(word.end()..(word.end() + BEHIND).min(bytes.len())).unwrap_or_default();
        let Some(value) = known.assigned.captures(window).and_then(|all| all.get(1).or_else(|| all.get(2)))
        else {
            continue;
        };
        if looks_random(value.as_bytes()) {
            found.push((word.end() + value.start(), word.end() + value.end(), "assigned-secret"));
        }
    }
    // The longer of two that begin at one place says more; what lies in another is a part of it.
    found.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
    let (mut secrets, mut last_end, mut line, mut counted) = (Vec::new(), 0, 1, 0);
    for (start, end, label) in found {
        if end <= last_end {
            continue;
        }
        last_end = end;
        line += lines(bytes.get(counted..start).unwrap_or_default());
        counted = start;
        secrets.push(Secret { label, line, matched: bytes.get(start..end).unwrap_or_default().to_vec() });
    }
    secrets
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

/// A longer run of letters and digits is something else that has the shape by chance.
fn is_within_word(bytes: &[u8], start: usize, end: usize) -> bool {
    let word = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at)).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let begins = bytes.get(start).is_some_and(u8::is_ascii_alphanumeric);
    let ends = end.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    (begins && word(start.checked_sub(1))) || (ends && word(Some(end)))
}

/// What documentation writes in the place of a token: one character again and again, or a word that says so.
fn is_placeholder(label: &str, token: &[u8]) -> bool {
    if label.ends_with("-key") && token.starts_with(b"-----") || label == "putty-key" {
        return false;
    }
    let tail = token.get(token.len().saturating_sub(16)..).unwrap_or_default();
    let first = tail.first().copied();
    let lower = String::from_utf8_lossy(token).to_lowercase();
    let says = ["example", "placeholder", "xxxxxx", "your"].iter().any(|word| lower.contains(word));
    let in_url = label == "password-in-url"
        && [":password@", ":pass@", ":secret@", ":user@", ":postgres@", ":root@", ":test@", ":guest@"]
            .iter()
            .any(|part| lower.contains(part));
    tail.iter().all(|byte| Some(*byte) == first) || says || in_url
}

/// Whether a quoted value is random enough to be a secret and nothing that stands for one.
fn looks_random(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value);
    let lower = text.to_lowercase();
    if PLACEHOLDERS.iter().any(|word| lower.contains(word)) {
        return false;
    }
    let kinds = [
        value.iter().any(u8::is_ascii_lowercase),
        value.iter().any(u8::is_ascii_uppercase),
        value.iter().any(u8::is_ascii_digit),
        value.iter().any(u8::is_ascii_punctuation),
    ];
    let kinds = kinds.iter().filter(|has| **has).count();
    entropy(value) >= if value.len() < 16 { 2.7 } else { 3.3 }
        && kinds >= 2
        && value.iter().any(u8::is_ascii_digit)
}

/// Bits of each byte, by how often it stands there.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let all = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / all)
        .map(|share| -share * share.log2())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that are neither the same nor words.
    fn run(alphabet: &str, len: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..len).map(|n| letters[n * 11 % letters.len()]).collect()
    }

    const ALNUM: &str = "aB3dE6gH9jK1mN4pQ7sT0vW2yZ";
    const HEX: &str = "0f1e2d3c4b5a6978";
    const UPPER: &str = "A1B2C3D4E5F6G7H8";

    /// A text of each shape. Put together here, so that no file of this repository holds one.
    fn samples() -> Vec<(&'static str, String)> {
        let a = |len| run(ALNUM, len);
        let h = |len| run(HEX, len);
        let u = |len| run(UPPER, len);
        let of = |prefix: &[&str], rest: String| prefix.concat() + &rest;
        vec![
            ("age-key", of(&["AGE-SECRET", "-KEY-1"], u(58))),
            ("airtable-token", of(&["pa", "t"], format!("{}.{}", a(14), h(64)))),
            ("anthropic-key", of(&["sk-", "ant-api03-"], a(20))),
            ("atlassian-token", of(&["ATA", "TT3"], a(60))),
            ("aws-key", of(&["AK", "IA"], u(16))),
            ("aws-key", of(&["AS", "IA"], u(16))),
            ("azure-secret", of(&["ab1", "8Q~"], a(34))),
            ("azure-storage-key", format!("Account{}{}==", "Key=", a(86))),
            ("bitbucket-token", of(&["AT", "BB"], a(32))),
            ("contentful-token", of(&["CF", "PAT-"], a(43))),
            ("crates-token", of(&["ci", "o"], a(32))),
            ("databricks-token", of(&["da", "pi"], h(32))),
            ("digitalocean-token", of(&["dop", "_v1_"], h(64))),
            ("digitalocean-token", of(&["doo", "_v1_"], h(64))),
            ("digitalocean-token", of(&["dor", "_v1_"], h(64))),
            ("discord-webhook", of(&["discord.com/api/", "webhooks/123456789012345678/"], a(60))),
            ("docker-token", of(&["dckr", "_pat_"], a(27))),
            ("doppler-token", of(&["dp.", "st."], a(43))),
            ("duffel-token", of(&["duffel", "_live_"], a(43))),
            ("dynatrace-token", of(&["dt0c01", "."], format!("{}.{}", u(24), u(64)))),
            ("easypost-key", of(&["EZ", "AK"], a(54))),
            ("facebook-token", of(&["EA", "AC"], a(80))),
            ("figma-token", of(&["fi", "gd_"], a(40))),
            ("fly-token", of(&["fm", "2_"], a(80))),
            ("github-token", of(&["github", "_pat_"], a(40))),
            ("github-token", of(&["gh", "p_"], a(36))),
            ("github-token", of(&["gh", "o_"], a(36))),
            ("github-token", of(&["gh", "u_"], a(36))),
            ("github-token", of(&["gh", "s_"], a(36))),
            ("github-token", of(&["gh", "r_"], a(36))),
            ("gitlab-token", of(&["gl", "pat-"], a(20))),
            ("gitlab-token", of(&["gl", "ptt-"], h(40))),
            ("gitlab-token", of(&["gl", "dt-"], a(20))),
            ("gitlab-token", of(&["gl", "rt-"], a(20))),
            ("google-client-secret", of(&["GOC", "SPX-"], a(28))),
            ("google-key", of(&["AI", "za"], a(35))),
            ("google-oauth-token", of(&["ya", "29."], a(60))),
            ("grafana-token", of(&["gl", "sa_"], format!("{}_{}", a(32), h(8)))),
            ("grafana-token", of(&["gl", "c_"], a(60))),
            ("groq-key", of(&["gs", "k_"], a(52))),
            ("heroku-key", of(&["HR", "KU-"], a(40))),
            ("hugging-face-token", of(&["h", "f_"], a(34))),
            ("jwt", of(&["ey", "J"], format!("{}.{}{}.{}", a(20), "eyJ", a(30), a(43)))),
            ("linear-key", of(&["lin", "_api_"], a(40))),
            ("lob-key", of(&["li", "ve_"], h(35))),
            ("mailchimp-key", h(32) + "-us" + "12"),
            ("mailgun-key", of(&["ke", "y-"], h(32))),
            ("mapbox-token", of(&["sk.", "eyJ"], format!("{}.{}", a(60), a(22)))),
            ("netlify-token", of(&["nf", "p_"], a(36))),
            ("new-relic-key", of(&["NR", "AK-"], u(27))),
            ("notion-token", of(&["nt", "n_"], a(46))),
            ("npm-token", of(&["np", "m_"], a(36))),
            ("nuget-key", of(&["oy", "2"], run("a1b2c3d4e5f6", 43))),
            ("openai-key", of(&["sk-", "proj-"], a(24))),
            ("openai-key", of(&["sk-", "svcacct-"], a(24))),
            ("openai-key", of(&["sk-", "admin-"], a(24))),
            ("api-key", of(&["sk", "-"], a(24))),
            ("openrouter-key", of(&["sk-", "or-v1-"], h(64))),
            ("perplexity-key", of(&["pp", "lx-"], a(48))),
            ("planetscale-token", of(&["pscale", "_tkn_"], a(43))),
            ("postman-key", of(&["PM", "AK-"], format!("{}-{}", h(24), h(34)))),
            ("prefect-key", of(&["pn", "u_"], a(36))),
            ("private-key", of(&["-----BEGIN RSA ", "PRIVATE KEY-----"], String::new())),
            ("private-key", of(&["-----BEGIN ", "PRIVATE KEY-----"], String::new())),
            ("pulumi-token", of(&["pu", "l-"], h(40))),
            ("putty-key", of(&["PuTTY-User", "-Key-File-"], "3: ssh".to_owned())),
            ("pypi-token", of(&["py", "pi-"], a(120))),
            ("replicate-token", of(&["r", "8_"], a(37))),
            ("rubygems-key", of(&["ruby", "gems_"], h(48))),
            ("sendgrid-key", of(&["S", "G."], format!("{}.{}", a(22), a(43)))),
            ("sentry-token", of(&["sn", "trys_"], a(80))),
            ("shopify-token", of(&["sh", "pat_"], h(32))),
            ("slack-token", of(&["xo", "xb-"], a(30))),
            ("slack-token", of(&["xa", "pp-1-A0123456789-123456789012-"], h(64))),
            ("slack-webhook", of(&["hooks.slack.com/", "services/T0123ABCD/B0123ABCD/"], a(24))),
            ("sourcegraph-token", of(&["sg", "p_"], h(40))),
            ("square-token", of(&["sq", "0atp-"], a(22))),
            ("stripe-key", of(&["sk", "_live_"], a(24))),
            ("stripe-key", of(&["rk", "_test_"], a(24))),
            ("stripe-webhook-secret", of(&["wh", "sec_"], a(32))),
            ("supabase-token", of(&["sb", "p_"], h(40))),
            ("tailscale-key", of(&["ts", "key-auth-"], a(30))),
            ("telegram-token", of(&["123456789", ":AA"], a(33))),
            ("terraform-token", of(&["abCDef12345678", ".atlasv1."], a(67))),
            ("twilio-key", of(&["S", "K"], h(32))),
            ("typeform-token", of(&["tf", "p_"], a(59))),
            ("vault-token", of(&["hv", "s."], a(30))),
            ("vault-token", of(&["hv", "b."], a(30))),
            ("xai-key", of(&["xa", "i-"], a(80))),
            ("1password-token", of(&["ops_", "eyJ"], a(200))),
            ("password-in-url", of(&["postgres://app:", "h4rd2Guess"], "@db.internal".to_owned())),
        ]
    }

    fn labels(text: &str) -> Vec<&'static str> {
        find(text.as_bytes()).into_iter().map(|secret| secret.label).collect()
    }

    #[test]
    fn each_shape_is_found_as_what_it_is() {
        let samples = samples();
        for (label, secret) in &samples {
            for text in [format!("key = {secret}\n"), format!("\"{secret}\","), secret.clone()] {
                assert_eq!(labels(&text), [*label], "{text}");
            }
        }
        let shapes: std::collections::BTreeSet<_> = SHAPES.iter().map(|(label, ..)| *label).collect();
        let tried: std::collections::BTreeSet<_> = samples.iter().map(|(label, _)| *label).collect();
        assert_eq!(shapes, tried);
        assert!(SHAPES.len() >= 60);
    }

    #[test]
    fn a_shape_that_is_too_short_or_a_part_of_a_word_is_none() {
        for (label, secret) in samples() {
            if matches!(label, "private-key" | "putty-key" | "password-in-url" | "mailchimp-key") {
                continue;
            }
            let short = &secret[..secret.len() - secret.len() / 2];
            assert!(!labels(short).contains(&label), "{label}: {short}");
            let within = format!("x{secret}");
            assert!(!labels(&within).contains(&label) || label.ends_with("webhook"), "{label}: {within}");
        }
    }

    #[test]
    fn what_documentation_writes_in_the_place_of_a_secret_is_none() {
        for text in [
            format!("{}{}", "ghp_", "x".repeat(36)),
            format!("{}{}", "AKIA", "IOSFODNN7EXAMPLE"),
            "-----BEGIN CERTIFICATE-----".to_owned(),
            "-----BEGIN PUBLIC KEY-----".to_owned(),
            "postgres://user:password@localhost/db".to_owned(),
            "postgres://user:${PASSWORD}@localhost/db".to_owned(),
            "https://example.org:8080/path@2".to_owned(),
            "password = \"changeme\"".to_owned(),
            "password = os.environ[\"DB_PASSWORD\"]".to_owned(),
            "secret: \"${{ secrets.TOKEN }}\"".to_owned(),
            "api_key = \"your-api-key-here\"".to_owned(),
            "password: 'correct horse'".to_owned(),
            "disk-usage-of-the-whole-machine-1234567890".to_owned(),
        ] {
            assert_eq!(labels(&text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn a_quoted_value_behind_a_word_for_a_secret_is_one() {
        for text in [
            format!("password = \"{}\"", run(ALNUM, 12)),
            format!("\"api_key\": \"{}\"", run(ALNUM, 24)),
            format!("DB_PASSWORD: '{}'", "tr0ub4dor&3!x"),
            format!("client_secret := \"{}\"", run(HEX, 32)),
        ] {
            assert_eq!(labels(&text), ["assigned-secret"], "{text}");
        }
    }

    #[test]
    fn the_line_of_each_is_told_and_one_place_is_one_secret() {
        let token = ["gh", "p_"].concat() + &run(ALNUM, 36);
        let text = format!("a\nb {token}\n\npassword = \"{token}\"\n");
        let found = find(text.as_bytes());
        let lines: Vec<_> = found.iter().map(|secret| (secret.line, secret.label)).collect();
        assert_eq!(lines, [(2, "github-token"), (4, "github-token")]);
        assert!(found.iter().all(|secret| secret.matched == token.as_bytes()));
    }
}
