//! Where the things of one repository lie: `.peers/`, the trusted store, the cache.
//!
//! A project is a main work tree; its linked worktrees share store and lock with it. Looking up a
//! [`Place`] writes nothing and makes nothing.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_git::PeerRepo;
use peers_model::ProjectId;
use peers_store::project::{self, Project};
use peers_store::{FsDisk, layout};
use peers_sys::digest::sha256_hex;
use peers_sys::dir::{FileError, FileId, Kind, SafeDir};
use peers_sys::env::Env;
use peers_sys::lock::{Acquired, FileLock, Probe, Sharing};

use crate::error::PlaceError;
use crate::holder::{self, Holder, sign};
use crate::link::{self, MAX_STORES};

/// The control directory below the top of a work tree.
pub const PEERS_DIR: &str = ".peers";
/// The run lock of older systems, below it.
const FOREIGN_LOCK: &str = "run.lock";
/// So long the run lock is tried for: a view that looks at it holds it for an instant.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Where the things of one repository lie.
#[derive(Debug, Clone)]
pub struct Place {
    work_dir: PathBuf,
    project_dir: PathBuf,
    identity: FileId,
    id: ProjectId,
    store: PathBuf,
    /// Where the path of the store comes from, for people.
    store_from: String,
    cache: PathBuf,
    cli_data: PathBuf,
}

/// Where the things of all repositories lie, with the links on the way resolved once.
#[derive(Debug, Clone)]
pub struct Homes {
    /// Directory of the stores, of the caches, of the agents' own data; each as it is named and as it is.
    dirs: [(PathBuf, PathBuf); 3],
    store_from: String,
}

impl Homes {
    /// As the environment says.
    ///
    /// # Errors
    /// [`PlaceError::NoHome`].
    pub fn of(env: &Env) -> Result<Self, PlaceError> {
        let under = |home: Option<PathBuf>| home.map(|home| home.join("peers")).ok_or(PlaceError::NoHome);
        let dirs = [under(env.state_home())?, under(env.cache_home())?, under(env.data_home())?.join("cli")];
        let dirs = dirs.map(|dir| {
            let real = resolved(&dir);
            (dir, real)
        });
        Ok(Self { dirs, store_from: state_from(env) })
    }

    /// Whether a store belongs to exactly this directory.
    fn has_main(&self, dir: &Path, identity: FileId) -> bool {
        let [(stores, _), ..] = &self.dirs;
        let store = SafeDir::open_shared(stores.join(project_id(dir).as_str()));
        let found = store.ok().and_then(|store| project::read(&mut FsDisk::new(store, None)).ok()?);
        found.is_some_and(|found| found.path == dir.to_string_lossy() && found.ino == identity.ino)
    }
}

impl Place {
    /// Finds the place of the work tree at exactly `target`; parent directories are not searched.
    ///
    /// # Errors
    /// [`PlaceError`], also when the store or the cache would lie inside the repository.
    pub fn locate(target: &Path, env: &Env) -> Result<Self, PlaceError> {
        let homes = Homes::of(env);
        let place = Self::locate_below(target, env, homes.as_ref().ok())?;
        // Their own names may be links too.
        place.outside([&place.store, &place.cache, &place.cli_data].map(|path| resolved(path)))?;
        Ok(place)
    }

    /// [`Place::locate`] for who looks at many places at once and makes nothing in them.
    ///
    /// # Errors
    /// As [`Place::locate`].
    pub fn locate_below(target: &Path, env: &Env, homes: Option<&Homes>) -> Result<Self, PlaceError> {
        let not_a_directory = || PlaceError::NotADirectory { path: target.to_owned() };
        // The one place where a path is resolved by name; everything else goes through handles.
        let work_dir = if SafeDir::is_canonical(target) {
            target.to_owned()
        } else {
            target.canonicalize().map_err(|_| not_a_directory())?
        };
        let top = SafeDir::open_shared(&work_dir).map_err(|_| not_a_directory())?;
        let linked = top.stat(".git")?.is_some_and(|git| git.kind == Kind::File);
        let here = || (work_dir.clone(), top.identity());
        let (project_dir, identity) = match linked.then(|| PeerRepo::open(&work_dir)) {
            None => here(),
            Some(Ok(repo)) => {
                let dir = main_work_tree(&repo);
                let identity = SafeDir::open_shared(&dir)?.identity();
                (dir, identity)
            }
            // A main work tree of ours, whose repository was replaced by a file that leads astray.
            Some(Err(_)) if homes.is_some_and(|homes| homes.has_main(&work_dir, top.identity())) => here(),
            Some(Err(error)) => return Err(link::error(error, env)),
        };
        let id = project_id(&project_dir);
        Self::of((work_dir, project_dir), identity, id, homes)
    }

    /// The place of a project of which is known where it lay and which it is, whatever lies there by now. Fit for
    /// looking who holds the lock of its trusted store; nothing of the work tree is looked at.
    ///
    /// # Errors
    /// [`PlaceError::NoHome`], and [`PlaceError::Inside`].
    pub fn recorded(path: &Path, id: &ProjectId, homes: Option<&Homes>) -> Result<Self, PlaceError> {
        let dirs = (path.to_owned(), path.to_owned());
        Self::of(dirs, FileId { dev: 0, ino: 0 }, id.clone(), homes)
    }

    fn of(
        (work_dir, project_dir): (PathBuf, PathBuf),
        identity: FileId,
        id: ProjectId,
        homes: Option<&Homes>,
    ) -> Result<Self, PlaceError> {
        let Homes { dirs, store_from } = homes.ok_or(PlaceError::NoHome)?;
        let [store, cache, cli_data] = dirs.each_ref().map(|(dir, _)| dir.join(id.as_str()));
        let reals = dirs.each_ref().map(|(_, real)| real.join(id.as_str()));
        let store_from = store_from.clone();
        let place = Self { work_dir, project_dir, identity, id, store, store_from, cache, cli_data };
        place.outside(reals)?;
        Ok(place)
    }

    /// Nothing of ours lies where agents can write. `reals`: the store, the cache, the agents' own data.
    fn outside(&self, reals: [PathBuf; 3]) -> Result<(), PlaceError> {
        let names = ["the trusted store", "the cache", "the agents' own data"];
        for (what, path) in names.into_iter().zip(reals) {
            if path.starts_with(&self.project_dir) || path.starts_with(&self.work_dir) {
                return Err(PlaceError::Inside { what, path });
            }
        }
        Ok(())
    }

    /// This place, if it is of the project that is known to lie there.
    ///
    /// # Errors
    /// [`PlaceError::Misled`].
    pub fn expect(self, known: Option<&ProjectId>) -> Result<Self, PlaceError> {
        if known.is_none_or(|id| *id == self.id) {
            return Ok(self);
        }
        Err(PlaceError::Misled { path: self.work_dir, leads: self.project_dir })
    }

    /// The work tree, without symlinks.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// The main work tree of the project; the work tree itself unless that is a linked one.
    #[must_use]
    pub fn project_dir(&self) -> &Path {
        &self.project_dir
    }

    /// Whether the work tree is a linked one of its project.
    #[must_use]
    pub fn is_linked(&self) -> bool {
        self.work_dir != self.project_dir
    }

    /// Which directory the main work tree is.
    #[must_use]
    pub fn identity(&self) -> FileId {
        self.identity
    }

    /// The project.
    #[must_use]
    pub fn id(&self) -> &ProjectId {
        &self.id
    }

    /// The path of the trusted store, which may not be there.
    #[must_use]
    pub fn store_dir(&self) -> &Path {
        &self.store
    }

    /// The path for checkouts and scratch, which may not be there.
    #[must_use]
    pub fn cache_dir(&self) -> &Path {
        &self.cache
    }

    /// The path for what the agents' programs keep of this project, which may not be there.
    #[must_use]
    pub fn cli_data_dir(&self) -> &Path {
        &self.cli_data
    }

    /// The path below which runs make their own worktrees, which may not be there.
    #[must_use]
    pub fn worktrees_dir(&self) -> PathBuf {
        let data = self.cli_data.parent().and_then(Path::parent).unwrap_or(&self.cli_data);
        data.join("worktrees").join(self.id.as_str())
    }

    /// The path of the control git directory, which may not be there.
    #[must_use]
    pub fn control_git_path(&self) -> PathBuf {
        self.store.join(layout::store::CONTROL_GIT)
    }

    /// The work tree as an open directory, permissions untouched.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn open_work(&self) -> Result<SafeDir, PlaceError> {
        Ok(SafeDir::open_shared(&self.work_dir)?)
    }

    /// `.peers/`, everything below it made private; `None` when it is not there.
    ///
    /// # Errors
    /// [`PlaceError::File`], exit 5 for a symlink.
    pub fn open_peers(&self) -> Result<Option<SafeDir>, PlaceError> {
        Ok(optional(self.open_work()?.into_private().subdir(PEERS_DIR))?)
    }

    /// The trusted store; `None` when it is not there. What it says is not looked at.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn open_store(&self) -> Result<Option<SafeDir>, PlaceError> {
        Ok(optional(SafeDir::open_root(self.stores()).and_then(|stores| stores.subdir(self.id.as_str())))?)
    }

    /// The trusted store, made when it is missing.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn create_store(&self) -> Result<SafeDir, PlaceError> {
        Ok(SafeDir::create_root(self.stores())?.create_subdir(self.id.as_str())?)
    }

    /// The directory of all stores. Its entries are ours: no symlink, no other owner.
    fn stores(&self) -> &Path {
        self.store.parent().unwrap_or(&self.store)
    }

    /// The store as it is, for looking.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn view_store(&self) -> Result<Option<SafeDir>, FileError> {
        optional(SafeDir::open_shared(self.stores()).and_then(|stores| stores.subdir(self.id.as_str())))
    }

    /// Store and `.peers/` for a command that writes, after a look at whose store it is.
    ///
    /// # Errors
    /// [`PlaceError::NotInitialised`], [`PlaceError::NoStore`], [`PlaceError::Moved`] and those of opening.
    pub fn open_store_disk(&self) -> Result<FsDisk, PlaceError> {
        let peers = self.open_peers()?;
        let Some(store) = self.open_store()? else { return Err(self.no_store(peers.is_some())) };
        self.checked(FsDisk::new(store, peers))
    }

    /// The same for a command that only looks: no permission is changed.
    ///
    /// # Errors
    /// As [`Place::open_store_disk`].
    pub fn open_view_disk(&self) -> Result<FsDisk, PlaceError> {
        let peers = optional(self.open_work()?.subdir(PEERS_DIR))?;
        let Some(store) = self.view_store()? else {
            return Err(self.no_store(peers.is_some()));
        };
        self.checked(FsDisk::new(store, peers))
    }

    fn checked(&self, mut disk: FsDisk) -> Result<FsDisk, PlaceError> {
        match project::read(&mut disk)? {
            Some(found) => self.same_project(&found)?,
            None => return Err(self.no_store(disk.dir(peers_store::Area::Peers).is_some())),
        }
        Ok(disk)
    }

    /// Whether the store belongs to this directory.
    ///
    /// The device number alone may differ: some file systems are numbered anew at each boot.
    ///
    /// # Errors
    /// [`PlaceError::Moved`].
    pub fn same_project(&self, found: &Project) -> Result<(), PlaceError> {
        if found.path == self.project_dir.to_string_lossy() && found.ino == self.identity.ino {
            return Ok(());
        }
        Err(PlaceError::Moved { path: self.project_dir.clone(), recorded: found.path.clone() })
    }

    /// What the store of this directory has to say about it.
    #[must_use]
    pub fn describe(
        &self,
        created_at: peers_model::Timestamp,
        base: Option<peers_model::CommitId>,
    ) -> Project {
        Project {
            v: 1,
            path: self.project_dir.to_string_lossy().into_owned(),
            dev: self.identity.dev,
            ino: self.identity.ino,
            created_at,
            base,
        }
    }

    /// The error for a store that is not there.
    #[must_use]
    pub fn no_store(&self, has_peers_dir: bool) -> PlaceError {
        let path = self.work_dir.clone();
        if !has_peers_dir {
            let top = PeerRepo::find_top(&self.work_dir).filter(|top| *top != self.work_dir);
            return PlaceError::NotInitialised { path, top };
        }
        PlaceError::NoStore {
            path,
            looked: self.store.clone(),
            from: self.store_from.clone(),
            was: self.was(),
            cloned: self.is_cloned(),
        }
    }

    /// Whether there is no `.peers/` in the work tree. What cannot be looked at may have one.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.open_work().is_ok_and(|work| matches!(optional(work.subdir(PEERS_DIR)), Ok(None)))
    }

    /// Whether `.peers/` holds what a clone brings along or a person wrote, goals and configuration, and nothing of
    /// a set-up on this machine, which always has its list of runs. Best effort: what cannot be looked at is none.
    #[must_use]
    pub fn is_cloned(&self) -> bool {
        let Some(peers) = self.open_work().ok().and_then(|work| work.subdir(PEERS_DIR).ok()) else {
            return false;
        };
        let is_file =
            |name: &str| peers.stat(name).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == Kind::File));
        // `peers verify` of a clone leaves the output of gates there.
        let set_up = match peers.parent_of(layout::peers::MIRROR) {
            Ok((log, runs)) => log.stat(runs).map_or(true, |stat| stat.is_some()),
            Err(error) => !error.is_not_found(),
        };
        !set_up && [layout::peers::GOALS, layout::peers::CONFIG].into_iter().any(is_file)
    }

    /// Where this very directory was when a store was made for it. Best effort, for a hint.
    fn was(&self) -> Option<PathBuf> {
        let stores = SafeDir::open_shared(self.stores()).ok()?;
        let names = stores.list(MAX_STORES).ok()?.entries.into_iter().map(|entry| entry.name);
        names.filter(|name| name.to_str().is_some_and(|name| ProjectId::new(name).is_ok())).find_map(|name| {
            let mut disk = FsDisk::new(stores.subdir(&name).ok()?, None);
            let found = project::read(&mut disk).ok()??;
            let here = (found.dev, found.ino) == (self.identity.dev, self.identity.ino);
            (here && found.path != self.project_dir.to_string_lossy()).then(|| PathBuf::from(found.path))
        })
    }

    /// Takes the run lock of the project, and writes into it that this command, such as `land`, holds it.
    /// The store must be there.
    ///
    /// # Errors
    /// [`PlaceError::Locked`], and [`PlaceError::ForeignLock`] when somebody holds that of older systems.
    pub fn lock(&self, command: &str) -> Result<FileLock, PlaceError> {
        let Some(store) = self.open_store()? else { return Err(self.no_store(self.open_peers()?.is_some())) };
        self.refuse_foreign_lock()?;
        Self::locked(&store, command)
    }

    /// The same whatever is held in `.peers/`, where agents can hold anything: for who begins no run.
    ///
    /// # Errors
    /// [`PlaceError::Locked`].
    pub fn lock_own(&self, command: &str) -> Result<FileLock, PlaceError> {
        let Some(store) = self.open_store()? else { return Err(self.no_store(false)) };
        Self::locked(&store, command)
    }

    fn locked(store: &SafeDir, command: &str) -> Result<FileLock, PlaceError> {
        match FileLock::acquire(store, layout::store::RUN_LOCK, Sharing::Exclusive, LOCK_PATIENCE)? {
            Acquired::Held(mut lock) => {
                sign(&mut lock, command);
                Ok(lock)
            }
            Acquired::Busy { content } => {
                Err(PlaceError::Locked { holder: Box::new(Holder::read(&content)) })
            }
        }
    }

    /// Takes over the run lock, which whoever started this process held and handed over, and writes into it that
    /// this process is about to be run `run`.
    ///
    /// # Errors
    /// [`PlaceError::File`] when this is not the lock of this project, or somebody else holds it.
    pub fn adopt_lock(
        &self,
        handed: peers_sys::OpenFile,
        run: &peers_model::RunId,
    ) -> Result<FileLock, PlaceError> {
        let Some(store) = self.open_store()? else { return Err(self.no_store(self.open_peers()?.is_some())) };
        let mut lock = FileLock::adopt(&store, layout::store::RUN_LOCK, handed)?;
        holder::sign_run(&mut lock, run);
        Ok(lock)
    }

    /// Who holds the run lock, if somebody does. Makes and changes nothing.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn holder(&self) -> Result<Option<Holder>, PlaceError> {
        let Some(store) = self.view_store()? else { return Ok(None) };
        Ok(match FileLock::probe_shared(&store, layout::store::RUN_LOCK)? {
            Probe::Held { content } => Some(Holder::read(&content)),
            Probe::Free { .. } | Probe::Missing => None,
        })
    }

    /// Whether somebody holds the lock that older systems keep in `.peers/`. Agents can write there: what it says
    /// is not read, and whether a loop of ours runs is not asked of it.
    ///
    /// # Errors
    /// [`PlaceError::File`].
    pub fn foreign_lock(&self) -> Result<bool, PlaceError> {
        let work = SafeDir::open_shared(&self.work_dir);
        let Some(peers) = optional(work.and_then(|work| work.subdir(PEERS_DIR)))? else { return Ok(false) };
        // What is no file of ours locks nobody out.
        if peers.stat(FOREIGN_LOCK)?.is_none_or(|stat| stat.kind != Kind::File) {
            return Ok(false);
        }
        Ok(matches!(FileLock::probe_shared(&peers, FOREIGN_LOCK)?, Probe::Held { .. }))
    }

    /// Refuses what is not to happen while somebody holds the run lock or that of older systems.
    ///
    /// # Errors
    /// [`PlaceError::Locked`], [`PlaceError::ForeignLock`].
    pub fn refuse_held(&self) -> Result<(), PlaceError> {
        match self.holder()? {
            Some(holder) => Err(PlaceError::Locked { holder: Box::new(holder) }),
            None => self.refuse_foreign_lock(),
        }
    }

    /// Refuses to begin anything beside an older system.
    ///
    /// # Errors
    /// [`PlaceError::ForeignLock`].
    pub fn refuse_foreign_lock(&self) -> Result<(), PlaceError> {
        if self.foreign_lock()? {
            let path = self.work_dir.join(PEERS_DIR).join(FOREIGN_LOCK);
            return Err(PlaceError::ForeignLock { path });
        }
        Ok(())
    }
}

/// The run locks that somebody holds now, of all stores of this user.
#[must_use]
pub fn held_locks(homes: &Homes) -> Vec<FileId> {
    let [(home, _), ..] = &homes.dirs;
    let Ok(stores) = SafeDir::open_shared(home) else { return Vec::new() };
    let names = stores.list(MAX_STORES).map(|list| list.entries).unwrap_or_default().into_iter();
    names
        .filter_map(|entry| {
            let store = stores.subdir(&entry.name).ok()?;
            let Ok(Probe::Held { .. }) = FileLock::probe_shared(&store, layout::store::RUN_LOCK) else {
                return None;
            };
            Some(store.stat(layout::store::RUN_LOCK).ok()??.id)
        })
        .collect()
}

/// Which variable says where stores lie.
fn state_from(env: &Env) -> String {
    const NAME: &str = "XDG_STATE_HOME";
    let home = match env.var("HOME").map(|home| Path::new(home).is_absolute()) {
        Some(true) => "HOME",
        Some(false) => "the password database, since HOME is not an absolute path",
        None => "the password database",
    };
    match env.var(NAME).filter(|value| !value.is_empty()) {
        Some(value) if Path::new(value).is_absolute() => format!("by {NAME}"),
        Some(value) => format!(
            "by {home}; {NAME} is `{}`, which is not an absolute path and is ignored",
            peers_sys::term::line(&value.to_string_lossy(), 80)
        ),
        None => format!("by {home}; {NAME} is not set"),
    }
}

/// The directory by which a project is known: its main work tree, or the repository itself when that
/// has none.
fn main_work_tree(repo: &PeerRepo) -> PathBuf {
    let common = repo.common_dir();
    match (common.file_name() == Some(OsStr::new(".git")), common.parent()) {
        (true, Some(parent)) => parent.to_owned(),
        _ => common.to_owned(),
    }
}

/// The id of the project at this canonical path.
///
/// # Panics
/// Never.
#[must_use]
#[expect(clippy::expect_used, reason = "the first 16 digits of a SHA-256 in lower-case hex are a project id")]
pub fn project_id(path: &Path) -> ProjectId {
    let digest = sha256_hex(path.as_os_str().as_bytes());
    ProjectId::new(digest.get(..16).unwrap_or_default()).expect("16 hex digits")
}

/// Why a repository cannot lie at this path, readable after it.
#[must_use]
pub fn unusable(path: &Path) -> Option<&'static str> {
    match path.to_str() {
        None => Some("is not UTF-8"),
        Some(text) if text.contains(['\n', '\r']) => Some("has a line break in it"),
        Some(_) => None,
    }
}

/// `path` without the symlinks of the part that exists.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    let real = |base: &Path| Some(base.canonicalize().ok()?.join(path.strip_prefix(base).ok()?));
    path.ancestors().find_map(real).unwrap_or_else(|| path.to_owned())
}

/// Whether there is no directory at this path, as after somebody removed a worktree by hand.
#[must_use]
pub fn is_gone(path: &Path) -> bool {
    SafeDir::open_shared(path).is_err_and(|error| error.is_not_found())
}

/// `None` instead of an error for what is not there.
fn optional<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
