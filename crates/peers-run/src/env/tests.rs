//! What children get of the environment, and what never.

use peers_model::goal::GateRun;

use super::*;

const REPO: &str = "/home/op/work";

fn host(vars: &[(&str, &str)]) -> Host {
    let mut all = vec![("HOME", "/home/op"), ("PATH", "/usr/bin:/bin")];
    all.extend(vars);
    Host::with(&Env::from_pairs(all), Path::new(REPO), &|p| Some(p.to_owned()))
}

fn turn(run: &RunId) -> Turn<'_> {
    Turn { run, tick: TickNo(7), git_config: Path::new("/scratch/gitconfig") }
}

fn run() -> RunId {
    RunId::new("0123456789abcdef").unwrap()
}

fn peer(host: &Host, chosen: &Policy, plan: &CommandPlan) -> BTreeMap<String, String> {
    let (name, project) = (PeerName::new("claude").unwrap(), ProjectId::new("fedcba9876543210").unwrap());
    let login = LoginEnv { names: &["IS_SANDBOX"], prefixes: &["ANTHROPIC_", "CLAUDE_"] };
    let identity = PeerIdentity { name: &name, project: &project, login, led: false };
    text(of_peer(host, chosen, turn(&run()), identity, plan))
}

fn gate(host: &Host, chosen: &Policy, wanted: &[&str]) -> BTreeMap<String, String> {
    let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
    let goal = GoalId::new("tests-pass").unwrap();
    let identity = GateIdentity {
        goal: Some(&goal),
        tree: Path::new("/tree"),
        bin: Path::new("/opt/peers"),
        home: Path::new("/scratch/home"),
        wanted: &wanted,
    };
    text(of_gate(host, chosen, turn(&run()), identity))
}

fn text(vars: Vars) -> BTreeMap<String, String> {
    vars.into_iter().map(|(n, v)| (n.into_string().unwrap(), v.into_string().unwrap())).collect()
}

/// One variable of each kind that must not get through.
const SENTINELS: [&str; 26] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_SSH_COMMAND",
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
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HTTPS_PROXY",
    "all_proxy",
    "AWS_SECRET_ACCESS_KEY",
    "KUBECONFIG",
    "DOCKER_HOST",
    "GITHUB_TOKEN",
    "SOMETHING_ELSE",
];

#[test]
fn nothing_of_the_operators_environment_reaches_a_child_unless_it_is_listed() {
    let vars: Vec<(&str, &str)> = SENTINELS.iter().map(|name| (*name, "sentinel")).collect();
    let host = host(&vars);
    let names: Vec<String> =
        SENTINELS.iter().filter(|n| **n != "SOMETHING_ELSE").map(|n| (*n).to_owned()).collect();
    // Even chosen by name, since whatever checks the file may be wrong one day.
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = Policy::passing(&names, &names);
    let wanted: Vec<&str> = SENTINELS.to_vec();
    for env in [peer(&host, &chosen, &CommandPlan::default()), gate(&host, &chosen, &wanted)] {
        let leaked: Vec<_> = env.iter().filter(|(_, value)| *value == "sentinel").collect();
        assert!(leaked.is_empty(), "{leaked:?}");
    }
}

#[test]
fn a_peer_that_is_led_gets_what_says_how_its_tool_works_and_no_login() {
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN"]
    {
        assert!(leads(name), "{name}");
    }
    for name in ["ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CLAUDE_CODE_USE_BEDROCK"] {
        assert!(leads(name), "{name}");
    }
    for name in ["ANTHROPIC_MODEL", "CLAUDE_CODE_MAX_OUTPUT_TOKENS", "IS_SANDBOX", "CLAUDE_CODE_EFFORT_LEVEL"]
    {
        assert!(!leads(name), "{name}");
    }
}

#[test]
fn authorities_are_passed_on_that_lie_outside_of_the_repository() {
    let inside = format!("{REPO}/ca.pem");
    let host =
        host(&[("SSL_CERT_FILE", "/srv/own.pem"), ("PIP_CERT", &inside), ("CURL_CA_BUNDLE", "ca.pem")]);
    let env = gate(&host, &Policy::default(), &[]);
    assert_eq!(env.get("SSL_CERT_FILE").map(String::as_str), Some("/srv/own.pem"));
    assert!(!env.contains_key("PIP_CERT") && !env.contains_key("CURL_CA_BUNDLE"));
    assert!(host.places().contains(&PathBuf::from("/srv/own.pem")));
}

#[test]
fn the_environment_of_a_peer_is_the_documented_one() {
    let host = host(&[("USER", "op"), ("LC_TIME", "de_DE.UTF-8"), ("TZ", "UTC"), ("OPENAI_API_KEY", "no")]);
    let env = peer(&host, &Policy::default(), &CommandPlan::default());
    let names: Vec<&str> = env.keys().map(String::as_str).collect();
    let mut expected = vec![
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_TIME",
        "TZ",
        "TERM",
        "TMPDIR",
        "CI",
        "NO_COLOR",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "GOPATH",
        "GOMODCACHE",
        "PYENV_ROOT",
        "NVM_DIR",
        "npm_config_cache",
        "GIT_TERMINAL_PROMPT",
        "GIT_ASKPASS",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_GLOBAL",
        "PEERS_RUN_ID",
        "PEERS_ITERATION",
        "PEERS_PEER_NAME",
        "PEERS_IN_TICK",
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ];
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(env["HOME"], "/home/op");
    assert_eq!(env["LANG"], "C.UTF-8");
    assert_eq!(env["GIT_AUTHOR_EMAIL"], "claude@peers.local");
    assert_eq!((env["PEERS_RUN_ID"].as_str(), env["PEERS_ITERATION"].as_str()), ("0123456789abcdef", "7"));
}

#[test]
fn a_peer_gets_the_login_of_its_own_tool_alone() {
    let host = host(&[("ANTHROPIC_API_KEY", "a"), ("CLAUDE_CONFIG_DIR", "/c"), ("OPENAI_API_KEY", "o")]);
    let env = peer(&host, &Policy::default(), &CommandPlan::default());
    assert_eq!((env["ANTHROPIC_API_KEY"].as_str(), env["CLAUDE_CONFIG_DIR"].as_str()), ("a", "/c"));
    assert!(!env.contains_key("OPENAI_API_KEY"));
    assert!(!gate(&host, &Policy::default(), &[]).contains_key("ANTHROPIC_API_KEY"));
}

#[test]
fn the_plan_of_a_tool_overrides_its_login_but_not_the_fixed_rows() {
    let host = host(&[("ANTHROPIC_API_KEY", "a"), ("OPENROUTER_API_KEY", "r")]);
    let plan = CommandPlan {
        env_add: vec![("ANTHROPIC_API_KEY".into(), String::new()), ("PATH".into(), "/evil".into())],
        env_from: vec![("ANTHROPIC_AUTH_TOKEN".into(), "OPENROUTER_API_KEY".into())],
        ..CommandPlan::default()
    };
    let env = peer(&host, &Policy::default(), &plan);
    assert_eq!((env["ANTHROPIC_API_KEY"].as_str(), env["ANTHROPIC_AUTH_TOKEN"].as_str()), ("", "r"));
    assert_eq!(env["PATH"], "/usr/bin:/bin");
}

#[test]
fn a_gate_gets_a_variable_only_if_project_and_operator_both_name_it() {
    let host = host(&[("A", "1"), ("B", "2"), ("C", "3")]);
    let chosen = Policy::passing(&["C"], &["A", "B"]);
    let env = gate(&host, &chosen, &["B", "C"]);
    assert_eq!(["A", "B", "C"].map(|n| env.contains_key(n)), [false, true, false]);
    assert_eq!((env["HOME"].as_str(), env["PEERS_REPO"].as_str()), ("/scratch/home", "/tree"));
    assert_eq!((env["PEERS_GOAL_ID"].as_str(), env["PEERS_BIN"].as_str()), ("tests-pass", "/opt/peers"));
    assert!(!env.contains_key("GIT_AUTHOR_NAME") && !env.contains_key("PEERS_PEER_NAME"));
}

#[test]
fn path_has_no_relative_empty_missing_or_repository_entry() {
    let env = Env::from_pairs([("PATH", "bin::/usr/bin:/gone:/home/op/work/bin:/link:.:/bin:/usr/bin")]);
    let place = |path: &Path| match path.to_str().unwrap() {
        "/gone" => None,
        "/link" => Some(PathBuf::from("/home/op/work/tools")),
        other => Some(PathBuf::from(other)),
    };
    let host = Host::with(&env, Path::new(REPO), &place);
    assert_eq!(host.path, "/usr/bin:/bin");
    let host = Host::with(&Env::from_pairs([("PATH", "/gone")]), Path::new(REPO), &place);
    assert_eq!(host.path, FALLBACK_PATH);
}

#[test]
fn a_directory_of_the_repository_on_the_path_is_named_with_what_a_gate_writes_instead() {
    let tmp = tempfile::tempdir().unwrap();
    let repo = tmp.path().canonicalize().unwrap();
    for dir in [".venv/bin", "tools"] {
        std::fs::create_dir_all(repo.join(dir)).unwrap();
    }
    std::fs::write(repo.join(".venv/bin/pytest"), "").unwrap();
    let shown = repo.display();
    let env = Env::from_pairs([(
        "PATH",
        format!("{shown}/.venv/bin:{shown}/gone:{shown}/tools:/usr/bin:{shown}/.venv/bin"),
    )]);
    let host = Host::look(&env, &repo);
    let said = |cmds: &[&str]| -> Vec<String> {
        let shell = |cmd: &&str| GateRun::Shell { cmd: (*cmd).to_owned(), pass_when: String::new() };
        let gates: Vec<_> = cmds.iter().map(|cmd| HardGoal::new(shell(cmd))).collect();
        host.left_out(&gates).iter().map(ToString::to_string).collect()
    };
    let of = |dir: &str, rest: &str| {
        format!("`{shown}/{dir}` on your PATH lies in the repository, so gates do not get it; {rest}")
    };
    let named = "a gate that needs a program from there names it with its path";
    assert_eq!(
        said(&["make", "pytest -q"]),
        [of(".venv/bin", "write `.venv/bin/pytest` in the gate"), of("tools", named)]
    );
    assert_eq!(said(&["cd web && pytest"])[0], of(".venv/bin", "write `../.venv/bin/pytest` in the gate"));
    assert_eq!(said(&[".venv/bin/pytest"])[0], of(".venv/bin", named));
}

#[test]
fn a_toolchain_inside_the_repository_is_left_out() {
    let vars = [("CARGO_HOME", "/home/op/work/.cargo"), ("GOPATH", "relative"), ("JAVA_HOME", "/opt/java")];
    let env = gate(&host(&vars), &Policy::default(), &[]);
    assert!(!env.contains_key("CARGO_HOME"));
    assert_eq!((env["GOPATH"].as_str(), env["JAVA_HOME"].as_str()), ("/home/op/go", "/opt/java"));
}

#[test]
fn a_check_finds_the_operators_store() {
    let host = host(&[("XDG_STATE_HOME", "/big/state")]);
    let identity = GateIdentity {
        goal: None,
        tree: Path::new("/tree"),
        bin: Path::new("/opt/peers"),
        home: Path::new("/scratch/home"),
        wanted: &[],
    };
    let env = text(of_check(&host, turn(&run()), identity));
    assert_eq!((env["XDG_STATE_HOME"].as_str(), env["HOME"].as_str()), ("/big/state", "/home/op"));
}

#[test]
fn the_git_configuration_survives_a_hostile_path() {
    let text = String::from_utf8(gate_git_config(&[Path::new("/a \"b\"\\c\nd")])).unwrap();
    assert!(text.contains("\tdirectory = \"/a \\\"b\\\"\\\\c\\nd\"\n"), "{text}");
    let name = PeerName::new("codex").unwrap();
    let text = String::from_utf8(peer_git_config(&name, Path::new("/r"))).unwrap();
    assert!(text.starts_with("[user]\n\tname = codex\n\temail = codex@peers.local\n"), "{text}");
}

#[test]
fn only_values_whose_name_says_so_are_secrets() {
    let host = host(&[
        ("MY_API_KEY", "0123456789"),
        ("TOKEN", "abcdefghij"),
        ("MONKEY", "banana-banana"),
        ("APP_CREDENTIALS", "/etc/creds.json"),
        ("DB_PASSWORD", "short"),
    ]);
    assert_eq!(host.secrets(), ["0123456789", "abcdefghij"]);
}
