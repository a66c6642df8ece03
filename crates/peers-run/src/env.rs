//! The environment of peers and gates: started from nothing, then only what is listed here.
//!
//! [`Host`] looks at the machine once; everything after that is a pure function from facts to
//! variables. What an operator may add by name stands in their own `sandbox.yaml`, never in a file
//! of the repository.

mod policy;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use peers_core::lint::{self, Program};
use peers_model::goal::HardGoal;
use peers_model::{GoalId, PeerName, ProjectId, RunId, TickNo};
use peers_sandbox::places_of_programs;
use peers_sys::env::Env;
use peers_sys::{reap, term};
use peers_tools::{CommandPlan, LoginEnv};

pub use policy::{Allowed, Net, Part, Policy, PolicyError};

/// Name and value, for `peers_sys::spawn`.
pub type Vars = Vec<(OsString, OsString)>;

/// Where programs are when the operator's `PATH` names no usable place.
const FALLBACK_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Variables that no child gets, whoever asks. A trailing `*` stands for any rest.
const NEVER: [&str; 21] = [
    "LD_*",
    "DYLD_*",
    "GIT_*",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONPATH",
    "NODE_OPTIONS",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "SSH_AUTH_SOCK",
    "DBUS_*",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "AWS_*",
    "KUBECONFIG",
    "DOCKER_HOST",
    "GITHUB_TOKEN",
];

/// Where build tools keep things: the variable, and the usual place below the home directory.
const TOOLCHAIN: [(&str, Option<&str>); 8] = [
    ("CARGO_HOME", Some(".cargo")),
    ("RUSTUP_HOME", Some(".rustup")),
    ("GOPATH", Some("go")),
    ("GOMODCACHE", Some("go/pkg/mod")),
    ("JAVA_HOME", None),
    ("PYENV_ROOT", Some(".pyenv")),
    ("NVM_DIR", Some(".nvm")),
    ("npm_config_cache", Some(".npm")),
];

/// Variables by which programs find whom to trust on the network, such as the authority of a company.
const TRUST: [&str; 9] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HTTP_CAINFO",
    "npm_config_cafile",
];

/// Of Cargo's home directory, what is no credential.
const OF_CARGO: [&str; 11] = [
    "bin",
    "config",
    "config.toml",
    "env",
    "git",
    "registry",
    ".crates.toml",
    ".crates2.json",
    ".global-cache",
    ".package-cache",
    ".package-cache-mutate",
];

/// Where Cargo keeps packages, settings and programs.
pub(crate) const CARGO_HOME: &str = "CARGO_HOME";

/// Where packages are kept that `setup` fetches: the variable, and the directory below that of the project.
pub(crate) const PACKAGES: [(&str, &str); 3] =
    [(CARGO_HOME, "cargo"), ("GOMODCACHE", "go"), ("npm_config_cache", "npm")];

/// Settings in them that decide what runs in a gate.
const SETTINGS: [(&str, &[&str]); 4] = [
    ("CARGO_HOME", &["config.toml", "config"]),
    ("RUSTUP_HOME", &["settings.toml"]),
    ("PYENV_ROOT", &["version"]),
    ("NVM_DIR", &["alias/default"]),
];

/// Whether no child may get the variable `name`.
#[must_use]
pub fn never_passes(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let listed = NEVER.iter().any(|rule| match rule.strip_suffix('*') {
        Some(prefix) => upper.starts_with(prefix),
        None => upper == *rule,
    });
    listed || upper.ends_with("_PROXY")
}

/// What is taken from the machine and the operator, looked up once.
#[derive(Clone)]
pub struct Host {
    operator: Env,
    repo: PathBuf,
    path: OsString,
    /// Entries of the operator's `PATH` that lie in the repository, and where in it.
    left_out: Vec<(PathBuf, PathBuf)>,
    home: Option<PathBuf>,
    toolchain: Vec<(&'static str, PathBuf)>,
    /// Files and directories that are trusted on the network.
    trust: Vec<(&'static str, PathBuf)>,
    /// Where packages are kept for checkouts of ours.
    packages: Option<PathBuf>,
}

/// A directory on the operator's `PATH` that gates do not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// As it stands in `PATH`.
    pub dir: PathBuf,
    /// What a gate writes in the place of its program's name; absent where no gate names one from there.
    pub write: Option<String>,
}

impl LeftOut {
    /// What a gate has to write, for people.
    #[must_use]
    pub fn remedy(&self) -> String {
        match &self.write {
            Some(program) => format!("write `{}` in the gate", term::inline(program)),
            None => "a gate that needs a program from there names it with its path".to_owned(),
        }
    }

    /// What is left out, for people.
    #[must_use]
    pub fn what(&self) -> String {
        let dir = term::inline(&self.dir.to_string_lossy());
        format!("`{dir}` on your PATH lies in the repository, so gates do not get it")
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.remedy())
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("repo", &self.repo).finish_non_exhaustive()
    }
}

impl Host {
    /// Looks. `repo` is the canonical path of the work tree.
    #[must_use]
    pub fn look(operator: &Env, repo: &Path) -> Self {
        Self::with(operator, repo, &|path| path.canonicalize().ok().filter(|p| p.is_dir()))
    }

    /// As [`Host::look`]; `place` gives the canonical path of a directory, if it is there.
    pub fn with(operator: &Env, repo: &Path, place: &dyn Fn(&Path) -> Option<PathBuf>) -> Self {
        // A link from outside that leads into the repository is as much the repository's.
        let outside =
            |path: &Path| place(path).is_some_and(|real| !real.starts_with(repo)) && !path.starts_with(repo);
        let inside = |path: &Path| {
            let real = place(path)?;
            path.strip_prefix(repo).or_else(|_| real.strip_prefix(repo)).ok().map(Path::to_owned)
        };
        let mut entries: Vec<PathBuf> = Vec::new();
        let mut left_out: Vec<(PathBuf, PathBuf)> = Vec::new();
        for dir in operator.search_path() {
            if outside(&dir) && !entries.contains(&dir) {
                entries.push(dir);
            } else if let Some(below) = inside(&dir)
                && !left_out.iter().any(|(known, _)| *known == dir)
            {
                left_out.push((dir, below));
            }
        }
        let path = if entries.is_empty() { FALLBACK_PATH.into() } else { join(&entries) };
        let home = operator.home();
        let mut toolchain = Vec::new();
        for (name, usual) in TOOLCHAIN {
            let given = operator.absolute(name);
            let usual = match (name, operator.absolute("GOPATH")) {
                ("GOMODCACHE", Some(gopath)) => Some(gopath.join("pkg/mod")),
                _ => home.as_ref().zip(usual).map(|(home, below)| home.join(below)),
            };
            if let Some(dir) = given.or(usual).filter(|dir| outside(dir)) {
                toolchain.push((name, dir));
            }
        }
        let trust = TRUST.iter().filter_map(|name| Some((*name, operator.absolute(name)?)));
        let trust = trust.filter(|(_, path)| !path.starts_with(repo)).collect();
        Self {
            operator: operator.clone(),
            repo: repo.to_owned(),
            path,
            left_out,
            home,
            toolchain,
            trust,
            packages: None,
        }
    }

    /// The search path of gates and hooks.
    #[must_use]
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    /// The directories on the operator's `PATH` that gates do not get, since agents can write there; each with
    /// what to write in the first of these gates that begins with a program from it.
    #[must_use]
    pub fn left_out<'g>(&self, gates: impl IntoIterator<Item = &'g HardGoal>) -> Vec<LeftOut> {
        let programs: Vec<Program> = gates.into_iter().filter_map(lint::program).collect();
        let of_path = |program: &&Program| !program.word.contains('/');
        let left_out = self.left_out.iter().map(|(dir, below)| {
            let has = |program: &&Program| self.repo.join(below).join(&program.word).is_file();
            let found = programs.iter().filter(of_path).find(has);
            let write = found.map(|program| {
                let up = "../".repeat(program.dir.split('/').filter(|part| !part.is_empty()).count());
                format!("{up}{}", below.join(&program.word).to_string_lossy())
            });
            LeftOut { dir: dir.clone(), write }
        });
        left_out.collect()
    }

    /// The work tree.
    #[must_use]
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// The operator's home directory.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The settings of build tools outside of the repository that gates are led to, there or not.
    #[must_use]
    pub fn tool_settings(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = Vec::new();
        for (variable, names) in SETTINGS {
            let homes = self.toolchain.iter().filter(|(passed, _)| *passed == variable);
            found.extend(homes.flat_map(|(_, dir)| names.iter().map(|name| dir.join(name))));
        }
        // Cargo also looks upwards from where it works, and that may lie below the home directory.
        let above = self.home.iter().map(|home| home.join(".cargo"));
        found.extend(above.flat_map(|dir| ["config.toml", "config"].map(|name| dir.join(name))));
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What children read and execute besides what the system has: the places of the programs on their search path,
    /// and tool chains. Of Cargo's home directory not the tokens of registries.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let home_of_cargo = |dir: &Path| {
            let known = self.toolchain.iter().filter(|(name, _)| *name == "CARGO_HOME").map(|(_, dir)| dir);
            known
                .chain(&self.home.as_ref().map(|home| home.join(".cargo")))
                .any(|cargo| dir.starts_with(cargo))
        };
        let search: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        let (of_cargo, others): (Vec<_>, Vec<_>) = search.into_iter().partition(|dir| home_of_cargo(dir));
        let mut out = places_of_programs(&others, self.home.as_deref());
        out.extend(of_cargo);
        for (name, dir) in &self.toolchain {
            match *name {
                "CARGO_HOME" => out.extend(OF_CARGO.iter().map(|below| dir.join(below))),
                _ => out.push(dir.clone()),
            }
        }
        for (_, path) in &self.trust {
            // What every child sees anyway.
            if !["/etc/ssl", "/etc/pki", "/usr"].iter().any(|dir| path.starts_with(dir))
                && !out.contains(path)
            {
                out.push(path.clone());
            }
        }
        // Cargo looks upwards from where it works, too.
        let above = self
            .home
            .iter()
            .flat_map(|home| ["config", "config.toml"].map(|name| home.join(".cargo").join(name)));
        out.extend(above);
        out
    }

    /// The settings in Cargo's home directory: the name, and where it is.
    pub(crate) fn cargo_settings(&self) -> Vec<(&'static str, PathBuf)> {
        let homes = self.toolchain.iter().filter(|(name, _)| *name == CARGO_HOME);
        let files = homes.flat_map(|(_, dir)| ["config.toml", "config"].map(|name| (name, dir.join(name))));
        files.filter(|(_, file)| file.is_file()).collect()
    }

    /// Whether a variable names the place of a tool chain.
    pub(crate) fn is_tool_chain(variable: &OsStr) -> bool {
        TOOLCHAIN.iter().any(|(name, _)| variable == *name)
    }

    /// Packages that `setup` fetches for checkouts of ours are kept there, and not where the operator keeps them.
    pub fn keep_packages_in(&mut self, dir: &Path) {
        self.packages = Some(dir.to_owned());
    }

    /// The operator's variable `name`.
    #[must_use]
    pub fn operator(&self, name: &str) -> Option<&OsStr> {
        self.operator.var(name)
    }

    /// Values that must not appear in any log: of variables whose name says that they are secret.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let secret = |name: &str| {
            let name = name.to_ascii_uppercase();
            let words = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS"];
            words.iter().any(|word| {
                name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            })
        };
        let vars = self.operator.vars().iter();
        vars.filter(|(name, _)| name.to_str().is_some_and(secret))
            .filter_map(|(_, value)| value.to_str())
            // A path to a secret is none.
            .filter(|value| value.len() >= 8 && !value.starts_with('/'))
            .map(str::to_owned)
            .collect()
    }

    fn base(&self, set: &mut Builder, home: Option<&Path>) {
        set.put("PATH", &self.path);
        if let Some(home) = home {
            set.put("HOME", home);
        }
        for name in ["USER", "LOGNAME", "TZ"] {
            if let Some(value) = self.operator.text(name) {
                set.put(name, value);
            }
        }
        set.put("LANG", self.operator.text("LANG").unwrap_or("C.UTF-8"));
        for (name, value) in self.operator.vars() {
            if name.to_str().is_some_and(|name| name.starts_with("LC_")) && !value.is_empty() {
                set.put(name, value);
            }
        }
        for (name, value) in [("TERM", "dumb"), ("TMPDIR", "/tmp"), ("CI", "1"), ("NO_COLOR", "1")] {
            set.put(name, value);
        }
        for (name, dir) in self.toolchain.iter().chain(&self.trust) {
            set.put(name, dir);
        }
    }

    fn chosen(&self, set: &mut Builder, names: &[String]) {
        for name in names.iter().filter(|name| !never_passes(name)) {
            if let Some(value) = self.operator.var(name) {
                set.put(name, value);
            }
        }
    }
}

/// What every child of a tick has in common.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The run; absent outside of one.
    pub run: &'a RunId,
    /// The tick.
    pub tick: TickNo,
    /// The generated git configuration.
    pub git_config: &'a Path,
}

/// Who a peer is.
#[derive(Debug, Clone, Copy)]
pub struct PeerIdentity<'a> {
    /// Its name.
    pub name: &'a PeerName,
    /// The project, so that a hook in its session knows that it is inside a tick.
    pub project: &'a ProjectId,
    /// The variables of its tool's own login.
    pub login: LoginEnv,
    /// It is led to its model by a proxy and gets of them only what says how it works.
    pub led: bool,
}

/// The environment of a peer that is not confined: with its operator's home, and its own tool's
/// login alone.
#[must_use]
pub fn of_peer(
    host: &Host,
    chosen: &Policy,
    turn: Turn<'_>,
    peer: PeerIdentity<'_>,
    plan: &CommandPlan,
) -> Vars {
    let mut set = Builder::default();
    host.chosen(&mut set, &chosen.peers.env);
    for (name, value) in host.operator.vars() {
        let passes =
            |name: &str| peer.login.passes(name) && !never_passes(name) && !(peer.led && leads(name));
        if name.to_str().is_some_and(passes) {
            set.put(name, value);
        }
    }
    for (name, source) in &plan.env_from {
        if let Some(value) = host.operator.var(source) {
            set.put(name, value);
        }
    }
    for (name, value) in &plan.env_add {
        set.put(name, value);
    }
    // From here on nothing that was chosen above can take effect under these names.
    host.base(&mut set, host.home.as_deref());
    git(&mut set, turn.git_config);
    marker(&mut set, turn);
    set.put("PEERS_PEER_NAME", peer.name.as_str());
    set.put("PEERS_IN_TICK", peer.project.as_str());
    let email = peer_email(peer.name);
    for who in ["AUTHOR", "COMMITTER"] {
        set.put(format!("GIT_{who}_NAME"), peer.name.as_str());
        set.put(format!("GIT_{who}_EMAIL"), &email);
    }
    set.vars()
}

/// Whether a variable of a tool's login holds a secret, or leads to another place than the proxy.
fn leads(name: &str) -> bool {
    const PARTS: [&str; 13] = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "URL",
        "HEADERS",
        "DIR",
        "HOME",
        "SOCKET",
        "FILE",
        "DESCRIPTOR",
        "CERT",
        "USE",
    ];
    name.split('_').any(|part| PARTS.contains(&part))
}

/// What a gate is about.
#[derive(Debug, Clone, Copy)]
pub struct GateIdentity<'a> {
    /// Its id; absent for an extra command of `peers verify`.
    pub goal: Option<&'a GoalId>,
    /// The root of the tree it runs in.
    pub tree: &'a Path,
    /// Our program.
    pub bin: &'a Path,
    /// A directory of its own, removed afterwards.
    pub home: &'a Path,
    /// `goals.env` of the project's configuration.
    pub wanted: &'a [String],
}

/// The environment of a gate's command, which runs the project's own code.
#[must_use]
pub fn of_gate(host: &Host, chosen: &Policy, turn: Turn<'_>, gate: GateIdentity<'_>) -> Vars {
    let mut set = Builder::default();
    let names: Vec<String> =
        gate.wanted.iter().filter(|name| chosen.gates.env.contains(name)).cloned().collect();
    host.chosen(&mut set, &names);
    host.base(&mut set, Some(gate.home));
    if let Some(packages) = host.packages.as_ref().filter(|_| gate.tree != host.repo) {
        for (name, below) in PACKAGES {
            set.put(name, packages.join(below));
        }
    }
    git(&mut set, turn.git_config);
    marker(&mut set, turn);
    about(&mut set, gate);
    set.vars()
}

/// The environment of a built-in check: our own program, which has to find the trusted store.
#[must_use]
pub fn of_check(host: &Host, turn: Turn<'_>, gate: GateIdentity<'_>) -> Vars {
    let mut set = Builder::default();
    for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        if let Some(value) = host.operator.var(name) {
            set.put(name, value);
        }
    }
    host.base(&mut set, host.home.as_deref());
    git(&mut set, turn.git_config);
    marker(&mut set, turn);
    about(&mut set, gate);
    set.vars()
}

fn about(set: &mut Builder, gate: GateIdentity<'_>) {
    if let Some(goal) = gate.goal {
        set.put("PEERS_GOAL_ID", goal.as_str());
    }
    set.put("PEERS_REPO", gate.tree);
    set.put("PEERS_BIN", gate.bin);
}

fn git(set: &mut Builder, config: &Path) {
    let fixed = [
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "/bin/false"),
        ("GIT_EDITOR", "true"),
        ("GIT_PAGER", "cat"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
    ];
    for (name, value) in fixed {
        set.put(name, value);
    }
    set.put("GIT_CONFIG_GLOBAL", config);
}

fn marker(set: &mut Builder, turn: Turn<'_>) {
    for (name, value) in reap::marker_env(turn.run, turn.tick) {
        set.put(name, value);
    }
}

/// The address under which a peer commits.
#[must_use]
pub fn peer_email(name: &PeerName) -> String {
    format!("{name}@peers.local")
}

/// The text of the git configuration that a peer gets in place of the operator's.
#[must_use]
pub fn peer_git_config(name: &PeerName, repo: &Path) -> Vec<u8> {
    git_config(name.as_str(), &peer_email(name), &[repo])
}

/// The text of the git configuration that gates get in place of the operator's.
#[must_use]
pub fn gate_git_config(trees: &[&Path]) -> Vec<u8> {
    git_config("peers-gate", "peers-gate@peers.local", trees)
}

fn git_config(name: &str, email: &str, trees: &[&Path]) -> Vec<u8> {
    let mut text = Vec::new();
    text.extend_from_slice(format!("[user]\n\tname = {name}\n\temail = {email}\n[safe]\n").as_bytes());
    for tree in trees {
        text.extend_from_slice(b"\tdirectory = \"");
        for byte in tree.as_os_str().as_encoded_bytes() {
            match byte {
                b'\n' => text.extend_from_slice(b"\\n"),
                b'\t' => text.extend_from_slice(b"\\t"),
                b'"' | b'\\' => text.extend([b'\\', *byte]),
                other => text.push(*other),
            }
        }
        text.extend_from_slice(b"\"\n");
    }
    text.extend_from_slice(b"[init]\n\tdefaultBranch = main\n");
    text
}

fn join(entries: &[PathBuf]) -> OsString {
    let mut path = OsString::new();
    for (i, entry) in entries.iter().enumerate() {
        if i > 0 {
            path.push(":");
        }
        path.push(entry);
    }
    path
}

/// Of equal names the last one counts.
#[derive(Default)]
struct Builder(BTreeMap<OsString, OsString>);

impl Builder {
    fn put(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.0.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
    }

    fn vars(self) -> Vars {
        self.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests;
