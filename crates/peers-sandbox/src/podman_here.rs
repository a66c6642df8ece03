//! Whether podman and its image are fit for the backend `podman`, and containers that nobody keeps any more.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use peers_sys::contain::{KEEPER_LABEL, PROTO, is_kept};
use peers_sys::env::Env;
use peers_sys::spawn::{RawExit, Spawn, StubProgram, resolve_program};
use serde_json::Value;

use crate::access::Access;
use crate::podman::{self, Limit, Podman, USUAL_IMAGE};
use crate::watched::run_watched;

/// One question to podman; the first one of a user sets up its storage.
const QUESTION: Duration = Duration::from_mins(1);
/// The oldest version with all that is asked for.
const OLDEST: (u32, u32) = (4, 3);
/// The label of an image that names the version of what is said through the socket.
const PROTO_LABEL: &str = "io.peers.proto";
/// The label of an image that names the version of its program.
const VERSION_LABEL: &str = "org.opencontainers.image.version";

/// Variables of the operator's that podman goes by. None is a secret. Not `USER`: who we are is told by our number.
const PASSED: [&str; 12] = [
    "HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "STORAGE_DRIVER",
    "STORAGE_OPTS",
    "TMPDIR",
];

/// Podman, to be asked.
#[derive(Debug, Clone)]
pub struct Client {
    stub: StubProgram,
    program: PathBuf,
    env: Vec<(OsString, OsString)>,
}

/// What there is to say of podman where it works.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Remarks(pub(crate) Vec<String>);

impl Client {
    /// Looks for podman on the operator's search path.
    ///
    /// # Errors
    /// What is missing, with the command that fixes it.
    pub fn find(stub: &StubProgram, operator: &Env) -> Result<Self, String> {
        let path = operator.var("PATH").unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin"));
        let program = resolve_program("podman".as_ref(), Some(path), Path::new("/"))
            .map_err(|_| "podman is not installed: `apt install podman`, `dnf install podman`".to_owned())?;
        let passed = PASSED.iter().filter_map(|name| Some(((*name).into(), operator.var(name)?.to_owned())));
        let env = passed.chain([("PATH".into(), path.to_owned())]).collect();
        Ok(Self { stub: stub.clone(), program, env })
    }

    /// What podman prints to these words.
    fn ask(&self, args: &[&str]) -> Result<Vec<u8>, String> {
        let mut spawn = Spawn::new(self.stub.clone(), &self.program, "/");
        spawn.args = args.iter().map(Into::into).collect();
        spawn.env.clone_from(&self.env);
        let ran = run_watched(&spawn, QUESTION).map_err(|error| error.to_string())?;
        if ran.exit == Some(RawExit::Code(0)) {
            return Ok(ran.stdout.bytes);
        }
        let said = String::from_utf8_lossy(&ran.stderr.bytes).into_owned();
        let line = said.lines().find(|line| line.starts_with("Error: ")).or_else(|| said.lines().last());
        Err(peers_sys::term::line(line.unwrap_or("no answer within a minute"), 200))
    }

    fn ask_json(&self, args: &[&str]) -> Result<Value, String> {
        serde_json::from_slice(&self.ask(args)?)
            .map_err(|error| format!("`podman {}`: {error}", args.join(" ")))
    }

    /// What it is like here, if version and image are fit.
    pub(crate) fn look(&self, image: Option<&str>) -> Result<(Podman, Remarks), String> {
        let info = self.ask_json(&["info", "--format", "json"])?;
        let (facts, remarks) = facts(&info)?;
        let image = image.unwrap_or(USUAL_IMAGE);
        let found = self.ask_json(&["image", "inspect", image]);
        let found = found.map_err(|why| format!("the image `{image}` is not here ({why}): `make image` builds it, `image:` in sandbox.yaml names another"))?;
        fit(image, &found)?;
        let Facts { rootless, limits } = facts;
        let (user, group) = peers_sys::env::own_ids();
        let podman = Podman {
            program: self.program.clone(),
            image: image.to_owned(),
            env: self.env.clone(),
            user,
            group,
            rootless,
            limits,
            open_files: peers_sys::env::most_open_files(),
            whole_loop: false,
        };
        Ok((podman, remarks))
    }

    /// How a loop is started in a container of its own. Containers that nobody keeps are removed before.
    ///
    /// # Errors
    /// What is missing, with the command that fixes it.
    pub fn whole_loop(
        &self,
        spawn: Spawn,
        access: &Access,
        (image, run): (Option<&str>, &str),
    ) -> Result<Spawn, String> {
        let (podman, _) = self.look(image)?;
        let found = self.ask_json(&["image", "inspect", &podman.image])?;
        same_version(&podman.image, &found)?;
        for (id, _) in self.strays()? {
            self.remove(&id)?;
        }
        let podman = Podman { whole_loop: true, ..podman };
        Ok(podman::whole_loop(spawn, access, (&podman, OsStr::new(run))))
    }

    /// The containers of peers whose keeper is gone: their ids, with what they are called.
    ///
    /// # Errors
    /// What podman says.
    pub fn strays(&self) -> Result<Vec<(String, String)>, String> {
        let filter = format!("label={KEEPER_LABEL}");
        let list = self.ask_json(&["ps", "--all", "--filter", &filter, "--format", "json"])?;
        Ok(strays(&list))
    }

    /// Ends a container and removes it.
    ///
    /// # Errors
    /// What podman says.
    pub fn remove(&self, id: &str) -> Result<(), String> {
        self.ask(&["rm", "--force", "--time", "0", "--ignore", id]).map(drop)
    }
}

fn strays(list: &Value) -> Vec<(String, String)> {
    let of = |one: &Value| {
        let label = one.pointer(&format!("/Labels/{}", KEEPER_LABEL.replace('/', "~1")))?.as_str()?;
        let id = one.get("Id")?.as_str()?.to_owned();
        let name = one.pointer("/Names/0").and_then(Value::as_str).unwrap_or(&id).to_owned();
        (!is_kept(label)).then_some((id, name))
    };
    list.as_array().into_iter().flatten().filter_map(of).collect()
}

struct Facts {
    rootless: bool,
    limits: Vec<Limit>,
}

fn facts(info: &Value) -> Result<(Facts, Remarks), String> {
    let text = |at: &str| info.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let version = text("/version/Version");
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < OLDEST {
        return Err(format!("podman is of version `{version}`, and 4.3 is needed: update it"));
    }
    if info.pointer("/host/serviceIsRemote").and_then(Value::as_bool) == Some(true) {
        return Err("podman works on another machine, and children have to be on this one".to_owned());
    }
    let rootless = info.pointer("/host/security/rootless").and_then(Value::as_bool).unwrap_or(true);
    let controllers: Vec<&str> = info
        .pointer("/host/cgroupControllers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let can = |limit: &Limit| {
        let listed = controllers.contains(&limit.controller());
        // There podman ignores them with a warning.
        if text("/host/cgroupVersion") == "v1" { !rootless && listed } else { listed }
    };
    let limits: Vec<Limit> = Limit::ALL.into_iter().filter(can).collect();
    let mut remarks = Vec::new();
    let lacking: Vec<&str> =
        Limit::ALL.iter().filter(|limit| !limits.contains(limit)).map(|limit| limit.controller()).collect();
    if !lacking.is_empty() {
        remarks.push(format!(
            "limits are not enforced for {}: this needs cgroups v2 with these controllers delegated to you, or root",
            lacking.join(", ")
        ));
    }
    if text("/store/graphDriverName") == "vfs" {
        remarks.push("podman copies whole images for each container (storage driver `vfs`): set `driver = \"overlay\"` in storage.conf".to_owned());
    }
    Ok((Facts { rootless, limits }, Remarks(remarks)))
}

/// Whether an image has our program, of this version.
fn fit(image: &str, inspected: &Value) -> Result<(), String> {
    let label = inspected.pointer(&format!("/0/Labels/{PROTO_LABEL}")).and_then(Value::as_str);
    match label.map(str::parse) {
        Some(Ok(PROTO)) => Ok(()),
        Some(_) => {
            Err(format!("the image `{image}` has peers of another version: build it anew with `make image`"))
        }
        None => Err(format!(
            "the image `{image}` is none of peers (no label `{PROTO_LABEL}`): `make image` builds one"
        )),
    }
}

/// Whether a loop of an image is of this very version: it writes the store that this program reads.
fn same_version(image: &str, inspected: &Value) -> Result<(), String> {
    let label = inspected.pointer(&format!("/0/Labels/{VERSION_LABEL}")).and_then(Value::as_str);
    let (own, found) = (env!("CARGO_PKG_VERSION"), label.unwrap_or("no version"));
    if found == own {
        return Ok(());
    }
    Err(format!("the image `{image}` has peers {found}, and this is {own}: build it anew with `make image`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn info(version: &str, rootless: bool, cgroups: &str, controllers: &[&str]) -> Value {
        json!({"version": {"Version": version}, "store": {"graphDriverName": "overlay"},
            "host": {"security": {"rootless": rootless}, "cgroupVersion": cgroups, "cgroupControllers": controllers}})
    }

    #[test]
    fn limits_are_those_that_the_kernel_can_enforce_and_the_others_are_told() {
        let all = ["cpu", "memory", "pids"];
        for (rootless, cgroups, controllers, count) in [
            (false, "v1", &all[..], 3),
            (true, "v1", &all[..], 0),
            (true, "v2", &all[1..], 2),
            (true, "v2", &[], 0),
        ] {
            let (facts, remarks) = facts(&info("4.3.1", rootless, cgroups, controllers)).unwrap();
            assert_eq!(
                (facts.limits.len(), remarks.0.is_empty()),
                (count, count == 3),
                "{cgroups} {controllers:?}"
            );
        }
    }

    #[test]
    fn an_old_podman_or_one_elsewhere_is_refused() {
        let refused = |info: &Value| facts(info).err().unwrap();
        assert!(refused(&info("4.2.9", false, "v2", &[])).contains("4.3 is needed"));
        let mut remote = info("5.0.0", false, "v2", &[]);
        remote["host"]["serviceIsRemote"] = json!(true);
        assert!(refused(&remote).contains("another machine"));
    }

    #[test]
    fn an_image_says_which_version_of_our_program_it_has() {
        let image = |labels: Value| json!([{"Labels": labels}]);
        let own = PROTO.to_string();
        assert_eq!(fit("x", &image(json!({"io.peers.proto": own}))), Ok(()));
        for (labels, why) in
            [(json!({"io.peers.proto": "0"}), "another version"), (json!(null), "none of peers")]
        {
            assert!(fit("x", &image(labels)).unwrap_err().contains(why));
        }
    }

    #[test]
    fn a_whole_loop_is_of_the_version_of_whoever_starts_it() {
        let image = |version: &str| json!([{"Labels": {"org.opencontainers.image.version": version}}]);
        assert_eq!(same_version("x", &image(env!("CARGO_PKG_VERSION"))), Ok(()));
        assert!(same_version("x", &image("0.0.9")).unwrap_err().contains("has peers 0.0.9, and this is"));
        assert!(same_version("x", &json!([{}])).unwrap_err().contains("`make image`"));
    }

    #[test]
    fn a_container_whose_keeper_is_gone_is_a_stray_and_others_are_not() {
        let list = json!([
            {"Id": "1", "Names": ["peers-1"], "Labels": {"io.peers.keeper": "1.0.none"}},
            {"Id": "2", "Names": ["db"], "Labels": {}},
            {"Id": "3", "Labels": null},
        ]);
        assert_eq!(strays(&list), [("1".to_owned(), "peers-1".to_owned())]);
    }
}
