//! What agents and gates reach from behind each wall, tried from inside by a shell, and the table of it in
//! docs/SECURITY.md (`PEERS_UPDATE=1` writes it anew). A wall that this machine cannot put up is left out, which is no
//! error unless `PEERS_WALLS=all` says that all are there; podman is tried with `PEERS_TEST_PODMAN=1` alone.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use crate::support::{Ended, World};

const WALLS: [&str; 4] = ["podman", "bwrap", "landlock", "none"];
const BEGIN: &str = "<!-- what the walls hold: begin -->\n";
const END: &str = "<!-- what the walls hold: end -->";

/// Something an agent, or a gate, tries: a script that ends well where it succeeds.
struct Row {
    who: &'static str,
    threat: &'static str,
    script: &'static str,
    /// By the order of [`WALLS`].
    holds: [bool; 4],
    left: &'static str,
}

const fn peer(threat: &'static str, script: &'static str, holds: [bool; 4], left: &'static str) -> Row {
    Row { who: "peer", threat, script, holds, left }
}

const fn gate(threat: &'static str, script: &'static str, holds: [bool; 4], left: &'static str) -> Row {
    Row { who: "gate", threat, script, holds, left }
}

/// Open to root alone: not tried without a wall.
const ROOT: &str = "without a wall, as far as your user may";
const ALL: [bool; 4] = [true, true, true, false];
const PLACES: [bool; 4] = [true, true, false, false];

/// That of an image is not that of this machine, which only root can tell apart.
const OWN_SHADOW: &str =
    "s=$(cat /etc/shadow) && sum=$(printf %s \"$s\" | cksum) && test \"${SHADOW:-$sum}\" = \"$sum\"";

/// More than may be there at a time. Nobody tries it without a limit of ours.
const BOMB: &str = "i=0; while [ $i -lt 5000 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null";
/// In the environment of `peers` itself, under a name that no child is given.
const SECRET: (&str, &str) = ("OPERATORS_API_TOKEN", "of-the-operator-7c1f");

const ROWS: [Row; 36] = [
    peer("read a file of yours", "cat \"$OUT/key\"", ALL, ""),
    peer("the same through a link in the repository", "ln -sfn \"$OUT/key\" l && cat l", ALL, ""),
    peer("write a file of yours", "echo x >> \"$OUT/key\"", ALL, ""),
    peer("read the trusted store", "cat \"$STORE/project.json\"", ALL, ""),
    peer("read another project", "cat \"$OUT/other/secret\"", ALL, ""),
    peer("read `/etc/shadow`", OWN_SHADOW, ALL, ROOT),
    peer("read the environment of the loop", "cat \"/proc/$LOOP/environ\"", ALL, ""),
    peer(
        "read a secret of the loop in the environment of any process, `/proc/1/environ` too",
        "cat /proc/[0-9]*/environ 2>/dev/null | grep -aq \"$secret\"",
        ALL,
        "",
    ),
    peer("signal the loop", "kill -0 \"$LOOP\"", ALL, "Landlock: before Linux 6.12 it may"),
    peer(
        "see the processes of this machine",
        "[ -d \"/proc/$LOOP\" ]",
        PLACES,
        "Landlock: names and arguments, nothing else",
    ),
    peer("leave a program behind that runs as you (set-user-ID)", "cp /bin/cat s && chmod u+s s", ALL, ""),
    Row {
        who: "turn",
        threat: "leave a daemon behind that outlives the turn",
        script: "setsid sh -c 'trap \"\" HUP TERM; while :; do sleep 600; done' \"$TAG\" </dev/null >/dev/null 2>&1 &",
        holds: [true; 4],
        left: "",
    },
    peer(
        "fill the table of processes (a fork bomb)",
        BOMB,
        PLACES,
        "bwrap: open where peers runs as root; elsewhere your own limit alone, and not tried",
    ),
    peer("mount something", "mount -t tmpfs none \"$PWD/.git\"", ALL, ROOT),
    peer(
        "read what the other peer is told",
        "cat .peers/inbox/ben/note",
        PLACES,
        "Landlock: a review is not blind",
    ),
    peer("read what the other peer said", "cat .peers/log/said", PLACES, "Landlock: a review is not blind"),
    peer("read the messages of peers", "cat .peers/comms/said", PLACES, "Landlock: a review is not blind"),
    peer(
        "change goals or configuration",
        "echo '#' >> .peers/goals.yaml",
        PLACES,
        "elsewhere it is found, and stops the run",
    ),
    peer(
        "plant a hook",
        "echo '#' > .git/hooks/pre-commit",
        PLACES,
        "elsewhere it is put back after the turn, and told",
    ),
    peer(
        "plant attributes of git",
        "mkdir -p .git/info && echo '* filter=x' > .git/info/attributes",
        PLACES,
        "elsewhere they are put back after the turn, and told",
    ),
    peer(
        "plant a git configuration",
        "git config core.fsmonitor /bin/true",
        PLACES,
        "elsewhere it is put back after the turn, and told",
    ),
    peer(
        "move `.git` away and make another",
        "mv .git .git2",
        PLACES,
        "elsewhere it stops the run, with the way back",
    ),
    peer(
        "talk to a socket of this machine",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1; connect(S, sockaddr_un($ENV{\"OUT\"} . \"/sock\")) or exit 1'",
        PLACES,
        "Landlock knows no sockets: a daemon that trusts your user",
    ),
    Row {
        who: "peer with your network",
        threat: "talk to an abstract socket of this machine, with its network",
        script: "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or exit 1; connect(S, pack(\"S\", AF_UNIX) . \"\\0$ENV{TAG}\") or exit 1'",
        holds: ALL,
        left: "before Linux 6.12 it may, unless it has a network of its own",
    },
    peer(
        "read what programs of yours share in `/dev/shm`",
        "cat \"/dev/shm/$TAG\"",
        PLACES,
        "Landlock: build tools need the directory",
    ),
    peer(
        "reach a port of this machine",
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'",
        PLACES,
        "Landlock: agents have your network",
    ),
    peer(
        "reach a port of this machine without the proxy (`unset HTTP_PROXY`)",
        "bash -c 'unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy; exec 3<>/dev/tcp/127.0.0.1/$PORT'",
        PLACES,
        "Landlock: agents have your network",
    ),
    peer(
        "talk UDP to a port of this machine",
        "bash -c 'exec 3<>/dev/udp/127.0.0.1/$UDP && echo x >&3 && read -rn 1 -t 20 answer <&3'",
        PLACES,
        "Landlock: agents have your network",
    ),
    peer(
        "ask a DNS server",
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_DGRAM, 0) && send(S, q(x), 0, sockaddr_in($ENV{DNSPORT}, inet_aton($ENV{DNS}))) or exit 1'",
        PLACES,
        "Landlock: agents have your network",
    ),
    peer("open a raw socket", "perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) or exit 1'", ALL, ROOT),
    peer(
        "see a network interface of this machine",
        "[ \"$(grep -c : /proc/net/dev)\" -gt 1 ]",
        PLACES,
        "Landlock: agents have your network",
    ),
    gate(
        "reach a port of this machine, from a gate",
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/$PORT'",
        PLACES,
        "Landlock: gates have your network",
    ),
    gate(
        "change goals, or the git directory, from a gate",
        "echo '#' >> .peers/goals.yaml || echo '#' > .git/hooks/pre-commit",
        PLACES,
        "elsewhere it is found, or put back",
    ),
    gate(
        "read what peers say to each other, from a gate",
        "cat .peers/log/said || cat .peers/inbox/ben/note || cat .peers/comms/said",
        PLACES,
        "Landlock: only `.git` and `.peers/` as a peer has them",
    ),
    gate(
        "read a token in the configuration of git, from a gate",
        "grep -q s3cret .git/config",
        PLACES,
        "elsewhere: keep tokens in a credential helper",
    ),
    gate("read a file of yours, from a gate", "cat \"$OUT/key\"", ALL, ""),
];

/// A repository, and beside it what is nobody's business.
struct Ground {
    world: World,
    _port: TcpListener,
    _sockets: [UnixListener; 2],
    shared: PathBuf,
    vars: String,
    udp: u16,
    tag: String,
}

impl Ground {
    fn new() -> Self {
        let world = World::ready("true");
        let out = world.path("outside");
        std::fs::create_dir_all(out.join("other")).unwrap();
        for file in ["key", "other/secret"] {
            std::fs::write(out.join(file), "secret\n").unwrap();
        }
        world.write(".peers/inbox/ben/note", "for ben\n");
        world.write(".peers/log/said", "by ben\n");
        world.write(".peers/comms/said", "by ben\n");
        std::fs::create_dir_all(world.at(".git/hooks")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = port.local_addr().unwrap().port();
        let udp = answers();
        let tag = format!("peers-{}-{at}", std::process::id());
        let name = SocketAddr::from_abstract_name(&tag).unwrap();
        let sockets =
            [UnixListener::bind(out.join("sock")), UnixListener::bind_addr(&name)].map(Result::unwrap);
        let shared = Path::new("/dev/shm").join(&tag);
        std::fs::write(&shared, "secret\n").unwrap();
        world.git(&["config", "http.https://git.example/.extraHeader", "Authorization: s3cret"]);
        let sum = "s=$(cat /etc/shadow 2>/dev/null) && printf %s \"$s\" | cksum";
        let sum = std::process::Command::new("sh").args(["-c", sum]).output().unwrap().stdout;
        let vars = format!(
            "export SHADOW='{}' OUT='{}' STORE='{}' LOOP={} PORT={at} UDP={udp} TAG={tag}\n",
            String::from_utf8_lossy(&sum).trim(),
            out.display(),
            world.store().display(),
            std::process::id(),
        );
        Self { world, _port: port, _sockets: sockets, shared, vars, udp, tag }
    }

    /// The same in a turn, which succeeds where a process of its own is left.
    fn turn(&self, wall: &str, script: &str) -> Ended {
        self.world.set_wall(wall);
        let script = format!("{}{script}", self.vars);
        self.world.script("ann", &serde_json::json!({"turns": [[{"shell": script}]]}).to_string());
        let mut done = self.world.peers(&["run", "--max-ticks", "1"]).exits(0);
        let lines = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = lines.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        let left = lines.any(|line| String::from_utf8_lossy(&line).contains(&self.tag));
        done.code = Some(i32::from(!left));
        done
    }

    fn shell(&self, who: &str, wall: &str, script: &str) -> Ended {
        if who == "turn" {
            return self.turn(wall, script);
        }
        // As for an agent whose login the auth proxy serves, where that is to be had.
        let own = ["podman", "bwrap"].contains(&wall);
        let policy = match who {
            "peer with your network" => "peers: {net: host}\n",
            _ if own => "peers: {net: proxy}\n",
            _ => "",
        };
        std::fs::write(self.world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
        // Nobody outside is asked where nothing holds: there it is a port of this machine.
        let dns = if own {
            "DNS=192.0.2.53 DNSPORT=53".to_owned()
        } else {
            format!("DNS=127.0.0.1 DNSPORT={}", self.udp)
        };
        let script = format!("{}export {dns}\nsecret={}\n{script}", self.vars, SECRET.1);
        let mut args = vec!["sandbox", "shell", "--sandbox", wall, "-c", &script];
        if who == "gate" {
            args.push("--gate");
        }
        let mut command = self.world.command(crate::support::program());
        Ended::of(&command.env(SECRET.0, SECRET.1).args(&args).output().unwrap())
    }
}

/// A port that answers what it is sent, by UDP.
fn answers() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut bytes = [0; 64];
        while let Ok((_, from)) = socket.recv_from(&mut bytes) {
            // Whoever asked may be gone.
            let _gone = socket.send_to(b"answer\n", from);
        }
    });
    port
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.shared);
    }
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SECURITY.md")
}

fn table() -> String {
    let mut out = String::from(
        "| An agent tries to | podman | bwrap | landlock | none | What is left |\n|---|---|---|---|---|---|\n",
    );
    for row in &ROWS {
        let [podman, bwrap, landlock, none] = row.holds.map(|holds| if holds { "held" } else { "open" });
        writeln!(out, "| {} | {podman} | {bwrap} | {landlock} | {none} | {} |", row.threat, row.left)
            .unwrap();
    }
    out
}

/// A tool that this machine lacks, or a kernel that is older than what a row says.
fn is_out_of_reach(row: &Row, wall: &str) -> bool {
    let there = |tool: &str| {
        let found = std::process::Command::new("sh").args(["-c", &format!("command -v {tool}")]).output();
        found.is_ok_and(|found| found.status.success())
    };
    let lacks = ["bash", "perl"].iter().any(|tool| row.script.starts_with(tool) && !there(tool));
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut parts = release.split(['.', '-']).map(|part| part.trim().parse::<u32>().unwrap_or(0));
    let old = (parts.next(), parts.next()) < (Some(6), Some(12));
    let alone = std::fs::read_to_string("/proc/net/dev").unwrap().lines().count() < 4;
    let own = ["podman", "bwrap"].contains(&wall);
    let root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    lacks
        || (row.script == BOMB && (!own || (root && wall == "bwrap")))
        || (alone && row.script.contains("/proc/net/dev"))
        || (old && wall == "landlock" && row.threat == "signal the loop")
        || (old && row.who == "peer with your network")
        || (row.script.contains("/dev/shm") && !Path::new("/dev/shm").is_dir())
}

#[test]
fn each_wall_holds_what_the_table_says_and_the_table_is_that_of_the_manual() {
    for (at, wall) in WALLS.iter().enumerate() {
        let mut ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        for row in &ROWS {
            if *wall == "none" && row.left == ROOT || is_out_of_reach(row, wall) {
                continue;
            }
            let done = ground.shell(row.who, wall, row.script);
            let held = done.code != Some(0);
            assert_eq!(held, row.holds[at], "{wall}: {}\n{}{}", row.threat, done.out, done.err);
            if !held {
                // What succeeds leaves traces.
                drop(ground);
                ground = Ground::new();
            }
        }
    }
    let path = document();
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("PEERS_UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
    } else {
        assert_eq!(found, table(), "PEERS_UPDATE=1 writes it anew");
    }
}

#[test]
fn what_work_needs_is_there_behind_each_wall() {
    for wall in WALLS {
        let ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        for script in [
            "echo new > a && git status --short && git log --oneline",
            "t=$(mktemp) && echo x > \"$t\" && rm \"$t\"",
            "mkdir -p \"$HOME/.cache/x\" && echo x > \"$HOME/.cache/x/y\"",
            "mkdir -p .peers/inbox/ann; echo note > .peers/inbox/ann/note",
            "cat .peers/goals.yaml",
            "getent passwd 0 || cat /etc/passwd",
        ] {
            let done = ground.shell("peer", wall, script);
            assert_eq!(done.code, Some(0), "{wall}: {script}: {}{}", done.out, done.err);
        }
        let done =
            ground.shell("gate", wall, "echo built > out && git log --oneline && echo x > \"$HOME/y\"");
        assert_eq!(done.code, Some(0), "{wall}: {}{}", done.out, done.err);
    }
}

/// Behind the walls that hold all of it: elsewhere it would ask hosts outside.
#[test]
fn the_doctor_tries_the_wall_from_inside_and_says_what_each_attempt_came_to() {
    for wall in ["podman", "bwrap"] {
        let ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        ground.world.set_wall(wall);
        ground.world.ctl(&["add", "."]).exits(0);
        let done = ground.world.ctl(&["doctor", "repo", "--isolation"]);
        for (who, cannot) in [
            ("an agent", "read the trusted store"),
            ("an agent", "write `/usr`"),
            ("an agent", "read the environment of peers"),
            ("an agent", "see processes outside"),
            ("an agent", "write `.git/config`"),
            ("an agent", "move `.git` away"),
            ("an agent", "write `.peers/`"),
            ("a gate", "reach an address"),
            ("a gate", "look a name up"),
        ] {
            // Columns are as wide as what stands in them.
            let said = format!("isolation   {who} behind {wall} cannot {cannot}");
            let line = done.out.lines().find(|line| line.ends_with(&said));
            assert!(line.is_some_and(|line| line.starts_with("ok ")), "{said}\n{}", done.out);
        }
    }
}

/// A mount cannot be renamed: nobody has to find out afterwards that it was.
#[test]
fn behind_walls_with_mounts_the_git_directory_is_busy() {
    for wall in ["podman", "bwrap"] {
        let ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        let done = ground.shell("peer", wall, "LC_ALL=C mv .git .git2");
        assert_ne!(done.code, Some(0), "{wall}");
        let said = format!("{}{}", done.out, done.err);
        assert!(said.contains("Device or resource busy"), "{wall}: {said}");
    }
}

/// Root is not held by it, and sees it all the same.
#[test]
fn the_number_of_processes_is_limited_behind_the_walls_that_say_so() {
    for wall in ["podman", "bwrap"] {
        let ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        for who in ["peer", "gate"] {
            let done = ground.shell(who, wall, "grep '^Max processes' /proc/self/limits").exits(0);
            assert!(done.out.contains(" 4096 "), "{wall}: {who}: {}", done.out);
        }
    }
}

#[test]
fn a_run_without_a_wall_is_refused_until_somebody_says_that_they_know() {
    let world = World::ready("true");
    std::fs::remove_file(world.path("home/config/peers/sandbox.yaml")).unwrap();
    let refused = world.peers(&["run", "--sandbox", "none"]).exits(6);
    refused.err_has("`--sandbox none` is of tier 0, and tier 1 is required").err_has("--i-know");
    assert!(world.records("run-started").is_empty());
    let done = world.peers(&["run", "--sandbox", "none", "--i-know", "--max-ticks", "1"]).exits(0);
    done.err_has("unconfined: agents and gates run as you, without a sandbox");
    // Whoever watches needs no more than the name.
    world.peers(&["tick", "--sandbox", "none"]).exits(0).err_has("unconfined");
    world.peers(&["verify", "--sandbox", "none"]).exits(0);
    world.peers(&["run", "--sandbox", "docker"]).exits(2).err_has("podman, bwrap, landlock, none");
}

#[test]
fn where_a_wall_is_missing_it_is_named_with_the_command_that_fixes_it() {
    let world = World::ready("true");
    std::fs::remove_file(world.path("home/config/peers/sandbox.yaml")).unwrap();
    // A search path with git and nothing else.
    let git = String::from_utf8(
        std::process::Command::new("sh").args(["-c", "command -v git"]).output().unwrap().stdout,
    );
    let bin = world.path("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(git.unwrap().trim(), bin.join("git")).unwrap();
    let mut command = world.command(crate::support::program());
    let refused =
        Ended::of(&command.env("PATH", &bin).args(["run", "--require", "2"]).output().unwrap()).exits(6);
    refused.err_has("no sandbox of tier 2 or better holds on this machine");
    refused.err_has("bwrap: bubblewrap is not installed: `apt install bubblewrap`");
    let podman = |args: &[&str]| {
        let mut command = world.command(crate::support::program());
        Ended::of(&command.env("PATH", &bin).args(args).output().unwrap()).exits(6)
    };
    podman(&["run", "--sandbox", "podman"]).err_has("podman: podman is not installed: `apt install podman`");
    podman(&["run", "--require", "3"]).err_has("podman: taken only by name, `--sandbox podman`");
}

#[test]
fn the_demonstration_needs_no_other_program_of_ours() {
    let ground = Ground::new();
    let alone = ground.world.path("alone");
    std::fs::create_dir(&alone).unwrap();
    std::fs::write(ground.world.path("home/config/peers/sandbox.yaml"), "").unwrap();
    std::fs::copy(crate::support::program(), alone.join("peers")).unwrap();
    let mut command = ground.world.command(alone.join("peers"));
    let done = Ended::of(&command.args(["demo", "--language", "shell"]).output().unwrap()).exits(0);
    done.out_has("Stopped: complete");
}

#[test]
fn the_demonstration_completes_behind_each_wall_and_says_which_it_is() {
    for wall in WALLS {
        let ground = Ground::new();
        if !ground.world.has_wall(wall) {
            continue;
        }
        let policy = format!("backend: {wall}\n");
        std::fs::write(ground.world.path("home/config/peers/sandbox.yaml"), policy).unwrap();
        let done = ground.world.peers(&["demo", "--language", "shell"]).exits(0);
        let said = if wall == "none" { "unconfined".to_owned() } else { format!("sandbox {wall}: ") };
        done.err_has(&said);
        done.out_has("Stopped: complete");
    }
}

#[test]
fn a_project_may_ask_for_a_better_wall_and_a_closed_network() {
    let world = World::ready("true");
    std::fs::write(world.path("home/config/peers/sandbox.yaml"), "require: 0\npeers: {net: host}\n").unwrap();
    let config = world.config("");
    world.write(".peers/config.yaml", &format!("{config}sandbox: {{require: 2}}\n"));
    world.accept(&[]);
    let refused = world.peers(&["run", "--sandbox", "landlock"]).exits(6);
    refused.err_has("`--sandbox landlock` is of tier 1, and tier 2 is required").err_has("`sandbox.require`");
    if !world.has_wall("bwrap") {
        return;
    }
    world.write(".peers/config.yaml", &format!("{config}sandbox: {{net: none}}\n"));
    world.accept(&[]);
    let interfaces = "test \"$(grep -c : /proc/net/dev)\" = 1";
    for who in [&["--gate"][..], &[]] {
        let args = [&["sandbox", "shell", "--sandbox", "bwrap"], who, &["-c", interfaces]].concat();
        world.peers(&args).exits(0);
    }
}
