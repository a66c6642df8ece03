//! The process outside: it asks for the container and ends as the program inside ended.
//!
//! `SIGUSR1`, also from the kernel when whoever started us ends, means: end it now. Any other signal is for the program.
//! Who keeps a loop with its lock ([`crate::spawn::Kept::with_lock`]) passes that one on too.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::door::Door;
use super::wire::{self, Plan};
use super::{DOOR, KEEPER_LABEL, own_label};
use crate::identity::{KEEPER, Pid};
use crate::spawn::RawExit;
use crate::stub::{Keeping, StubFailure, StubOptions, change_mask};

/// The container runs, and its first process has not come to the door: it never will after this.
const PATIENCE: Duration = Duration::from_secs(15);
/// What belongs to a container ends within so long after its program; else it is removed by name.
const SETTLED: Duration = Duration::from_secs(5);
/// The same where it was ended by force, and somebody waits.
const FORCED: Duration = Duration::from_millis(700);
/// Between two looks at what is left.
const LOOK: Duration = Duration::from_millis(5);

enum News {
    Signal(Signal),
    /// The program that makes the container has ended.
    Client(io::Result<Output>),
    /// The first process is there, and has all it needs.
    Inside(Arc<UnixStream>),
    /// It could not be given that.
    NotInside(io::Error),
    Ended(RawExit),
    /// The first process is gone and said nothing.
    Lost,
}

/// Has the container made by the program and the arguments of `options`, and waits for its end.
pub(crate) fn keep(options: &StubOptions, keeping: &Keeping) -> Result<RawExit, StubFailure> {
    let step = |name: &'static str| move |error: io::Error| StubFailure::setup(name, &error);
    let signals: SigSet = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1]
        .into_iter()
        .collect();
    change_mask(SigmaskHow::SIG_BLOCK, &signals).map_err(step("signal mask"))?;
    // What monitors the container comes to us when the program that made it ends.
    rustix::process::set_child_subreaper(Some(Pid::of_self().raw()))
        .map_err(|errno| step("subreaper")(errno.into()))?;
    let runtime =
        keeping.env.iter().find(|(name, _)| name == "XDG_RUNTIME_DIR").map(|(_, dir)| dir.as_os_str());
    let (door, listener) = Door::open(runtime).map_err(step("socket of a container"))?;
    // Nobody else has it as long as anything of the container may be there.
    let lock = keeping.with_lock.then(|| rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)).transpose();
    let lock = lock.map_err(|errno| step("lock")(errno.into()))?;
    let keeper = keeping.with_lock.then(own_label).flatten().map(|label| (KEEPER.into(), label.into()));
    let plan = Plan {
        cwd: std::env::current_dir().map_err(step("working directory"))?,
        env: std::env::vars_os().chain(keeper).collect(),
        words: keeping.words.clone(),
    };
    let name = format!("peers-{}", crate::rand::hex::<8>().map_err(step("random bytes"))?);
    let (tell, told) = channel();
    hear_signals(signals, tell.clone());
    await_inside(listener, plan, tell.clone());
    run_client(client(options, keeping, &door, &name), tell);
    let ended = watch(&told, keeping.with_lock);
    // From here on nothing can come in any more.
    drop(door);
    let limit = if matches!(ended, Ok(End::Forced)) { FORCED } else { SETTLED };
    if !settled(limit) {
        remove(options, keeping, &name);
    }
    drop(lock);
    match ended? {
        End::Program(exit) => Ok(exit),
        End::Forced => Ok(RawExit::Signal(9)),
    }
}

enum End {
    Program(RawExit),
    Forced,
}

fn watch(told: &Receiver<News>, passes_all: bool) -> Result<End, StubFailure> {
    let mut inside: Option<Arc<UnixStream>> = None;
    let mut waiting = Vec::new();
    let mut until: Option<Instant> = None;
    let failed = |why: &str| StubFailure::setup("container", &io::Error::other(why.to_owned()));
    loop {
        let news = match until.filter(|_| inside.is_none()) {
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => told.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match news {
            Ok(News::Signal(Signal::SIGUSR1)) if !passes_all => {
                // It sees that, and the kernel ends the rest.
                if let Some(inside) = inside {
                    let _closed = inside.shutdown(std::net::Shutdown::Both);
                }
                return Ok(End::Forced);
            }
            Ok(News::Signal(signal)) => match &inside {
                // One that cannot hear it has ended.
                Some(inside) => {
                    let _gone = wire::tell_signal(inside, as_number(signal));
                }
                None => waiting.push(signal),
            },
            Ok(News::Inside(stream)) => {
                for signal in waiting.drain(..) {
                    let _gone = wire::tell_signal(&stream, as_number(signal));
                }
                inside = Some(stream);
            }
            Ok(News::Ended(exit)) => return Ok(End::Program(exit)),
            Ok(News::Lost) => return Ok(End::Program(RawExit::Signal(as_number(Signal::SIGKILL)))),
            Ok(News::NotInside(error)) => return Err(StubFailure::setup("container", &error)),
            Ok(News::Client(_)) if inside.is_some() => {}
            Ok(News::Client(Err(error))) => return Err(StubFailure::setup("start of a container", &error)),
            Ok(News::Client(Ok(output))) if output.status.success() => {
                until = Instant::now().checked_add(PATIENCE);
            }
            Ok(News::Client(Ok(output))) => return Err(failed(&words(&output.stderr))),
            Err(RecvTimeoutError::Timeout) => return Err(failed("it ended before its program began")),
            Err(RecvTimeoutError::Disconnected) => return Err(failed("nobody watches it")),
        }
    }
}

/// What the program that makes containers says of its failure.
fn words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find_map(|line| line.strip_prefix("Error: "));
    error.or_else(|| lines().next_back()).unwrap_or("it was not made, and nothing says why").to_owned()
}

fn as_number(signal: Signal) -> i32 {
    #[expect(clippy::as_conversions, reason = "an enumeration of the system's own numbers")]
    let number = signal as i32;
    number
}

fn hear_signals(signals: SigSet, tell: Sender<News>) {
    thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            if tell.send(News::Signal(signal)).is_err() {
                return;
            }
        }
    });
}

/// Hands the plan and our own streams to the first one that comes, and waits for the end.
fn await_inside(listener: UnixListener, plan: Plan, tell: Sender<News>) {
    let serve = move |tell: &Sender<News>| -> io::Result<()> {
        let (stream, _) = listener.accept()?;
        drop(listener);
        let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
        wire::send(&stream, &plan, [input.as_fd(), output.as_fd(), errors.as_fd()])?;
        let_go()?;
        let stream = Arc::new(stream);
        // Whoever listens goes only with the whole process.
        let _heard = tell.send(News::Inside(Arc::clone(&stream)));
        let _heard = tell.send(wire::hear_end(&stream).map_or(News::Lost, News::Ended));
        Ok(())
    };
    thread::spawn(move || {
        if let Err(error) = serve(&tell) {
            let _heard = tell.send(News::NotInside(error));
        }
    });
}

/// The program has our streams: they end when it ends, and not with us.
fn let_go() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

/// The program that makes the container, with what only this process knows.
fn client(options: &StubOptions, keeping: &Keeping, door: &Door, name: &str) -> Command {
    let mut command = Command::new(&options.exec);
    let vars = keeping.env.iter().map(|(name, value)| (name, value));
    // A group of its own: signals of ours are for the program.
    command.env_clear().envs(vars).current_dir("/").stdin(Stdio::null()).process_group(0);
    command.args(["run", "--detach", "--rm", "--name", name]);
    command.args(["--label", &format!("{KEEPER_LABEL}={}", own_label().unwrap_or_default())]);
    let mut mount = OsString::from("type=bind,source=");
    mount.push(door.dir());
    mount.push(format!(",destination={DOOR},ro=true"));
    command.arg("--mount").arg(mount).args(&options.args);
    command
}

fn run_client(mut command: Command, tell: Sender<News>) {
    thread::spawn(move || {
        // A mask is inherited, and what monitors the container waits for signals. One that comes to this thread
        // meanwhile ends us, which ends the container.
        let masked = SigSet::empty().thread_set_mask().map_err(io::Error::from);
        let output = masked.and_then(|()| command.output());
        let _heard = tell.send(News::Client(output));
    });
}

/// Whether all that belongs to the container has ended in time.
fn settled(limit: Duration) -> bool {
    let began = Instant::now();
    loop {
        while matches!(waitpid(None, Some(WaitPidFlag::WNOHANG)), Ok(status) if status != WaitStatus::StillAlive)
        {
        }
        if !anybody() {
            return true;
        }
        if began.elapsed() >= limit {
            return false;
        }
        thread::sleep(LOOK);
    }
}

/// Children that make or monitor a container. One that keeps the user's namespaces for later commands is none of them.
fn anybody() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let all: Vec<String> =
        lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    all.iter().any(|pid| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        ["conmon", "podman", "exe"].contains(&name.trim())
    })
}

/// The last resort.
fn remove(options: &StubOptions, keeping: &Keeping, name: &str) {
    let mut command = Command::new(&options.exec);
    let vars = keeping.env.iter().map(|(name, value)| (name, value));
    command.env_clear().envs(vars).current_dir("/").stdin(Stdio::null());
    command.args(["rm", "--force", "--time", "0", "--ignore", name]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // What stays has no process, and the next start removes it.
    let _removed = SigSet::empty().thread_set_mask().map_err(io::Error::from).and_then(|()| command.status());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_failure_the_error_is_told_and_not_the_warnings() {
        let said = "time=\"x\" level=warning msg=\"y\"\nError: localhost/x: image not known\n";
        assert_eq!(words(said.as_bytes()), "localhost/x: image not known");
        assert_eq!(words(b"odd\nlast\n\n"), "last");
        assert!(words(b"").contains("nothing says why"));
    }
}
