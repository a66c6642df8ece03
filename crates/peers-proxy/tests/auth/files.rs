//! The login file while the proxy runs.

use std::path::PathBuf;
use std::process::Command;

use peers_proxy::auth::Provider;

use crate::fake::{Fake, json};
use crate::login::login;
use crate::world::{Setting, World, with_login};

async fn refusing() -> Fake {
    Fake::start(|asked| match asked.line.as_str() {
        "POST /token" => json(200, "{\"access_token\":\"a1\",\"refresh_token\":\"r1\",\"expires_in\":28800}"),
        _ => json(401, "{}"),
    })
    .await
}

async fn world(fake: &Fake) -> World {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("login.json");
    std::fs::write(&file, login("a0", "r0", 8)).unwrap();
    let service = with_login(Provider::Anthropic, fake, &file, "/token");
    World::start_in(tmp, vec![service], Setting::new()).await
}

/// A login that cannot be written back is not renewed: its tool would be logged out.
async fn is_not_renewed(world: &World, fake: &Fake) {
    let told = world.message().await;
    assert_eq!((told.status.as_u16(), told.code().as_str()), (502, "refresh"), "{}", told.body);
    assert_eq!(fake.count("POST /token"), 0);
}

#[tokio::test]
async fn a_file_that_became_a_link_is_refused() {
    let fake = refusing().await;
    let world = world(&fake).await;
    let dir = world.tmp.path();
    std::fs::rename(dir.join("login.json"), dir.join("victim")).unwrap();
    std::os::unix::fs::symlink("victim", dir.join("login.json")).unwrap();
    is_not_renewed(&world, &fake).await;
    assert_eq!(std::fs::read_to_string(dir.join("victim")).unwrap(), login("a0", "r0", 8));
}

#[tokio::test]
async fn a_file_with_a_second_name_is_refused() {
    let fake = refusing().await;
    let world = world(&fake).await;
    let dir = world.tmp.path();
    std::fs::hard_link(dir.join("login.json"), dir.join("other")).unwrap();
    is_not_renewed(&world, &fake).await;
}

#[tokio::test]
async fn a_lock_that_is_a_link_is_refused() {
    let fake = refusing().await;
    let world = world(&fake).await;
    let dir = world.tmp.path();
    std::fs::write(dir.join("victim"), "content").unwrap();
    std::os::unix::fs::symlink("victim", dir.join("login.json.peers-lock")).unwrap();
    is_not_renewed(&world, &fake).await;
    assert_eq!(std::fs::read_to_string(dir.join("victim")).unwrap(), "content");
}

#[tokio::test]
async fn a_renewed_file_is_private_and_nothing_else_is_left_beside_it() {
    use std::os::unix::fs::PermissionsExt;
    let fake = refusing().await;
    let world = world(&fake).await;
    world.message().await;
    assert_eq!(fake.count("POST /token"), 1);
    let dir = world.tmp.path();
    let mode = std::fs::metadata(dir.join("login.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["login.json", "login.json.peers-lock", "run", "usage.jsonl"]);
}

#[tokio::test]
async fn a_renewal_that_could_not_be_written_is_not_undone_by_the_old_file() {
    let tmp = tempfile::tempdir().unwrap();
    let file = tmp.path().join("login.json");
    std::fs::write(&file, login("a0", "r0", 8)).unwrap();
    let (place, aside) = (file.clone(), tmp.path().join("aside"));
    let fake = Fake::start(move |asked| match asked.line.as_str() {
        "POST /token" => {
            let first = asked.body.ends_with(b"\"r0\"}");
            if first {
                std::fs::rename(&place, &aside).unwrap();
            }
            let n = if first { 1 } else { 2 };
            json(
                200,
                &format!("{{\"access_token\":\"a{n}\",\"refresh_token\":\"r{n}\",\"expires_in\":28800}}"),
            )
        }
        _ if asked.header("authorization") == "Bearer a0" => json(401, "{}"),
        _ => json(200, "{}"),
    })
    .await;
    let service = with_login(Provider::Anthropic, &fake, &file, "/token");
    let world = World::start_in(tmp, vec![service], Setting::new()).await;
    assert_eq!(world.message().await.status, 200);
    std::fs::rename(world.tmp.path().join("aside"), &file).unwrap();
    world.pass(std::time::Duration::from_hours(9));
    assert_eq!(world.message().await.status, 200);
    assert_eq!(fake.asked().last().unwrap().header("authorization"), "Bearer a2");
    assert!(std::fs::read_to_string(&file).unwrap().contains("\"r2\""));
}

/// Says to a test where a login file is a mount of its own.
const MOUNTED: &str = "PEERS_TEST_MOUNTED_LOGIN";

/// Starts itself again with a mount in a namespace of its own. Where the system allows no such namespace nothing is
/// shown here; the fallback itself is tested beside its code.
#[tokio::test]
async fn a_login_file_that_is_a_mount_is_renewed_in_place() {
    let Some(file) = std::env::var_os(MOUNTED).map(PathBuf::from) else {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("login.json");
        std::fs::write(&file, login("a0", "r0", 8)).unwrap();
        let script = "mount --bind \"$0\" \"$0\" || exit 77; exec \"$@\"";
        let ended = Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .arg(&file)
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "files::a_login_file_that_is_a_mount_is_renewed_in_place"])
            .env(MOUNTED, &file)
            .output();
        match ended {
            Ok(ended) if ended.status.success() => {
                assert_eq!(std::fs::read_to_string(&file).unwrap(), login("a1", "r1", 8));
            }
            Ok(ended) if ended.status.code() == Some(101) => {
                panic!("{}", String::from_utf8_lossy(&ended.stdout))
            }
            no_namespace => println!("not shown: {no_namespace:?}"),
        }
        return;
    };
    let fake = refusing().await;
    let service = with_login(Provider::Anthropic, &fake, &file, "/token");
    let world = World::start(vec![service]).await;
    world.message().await;
    assert_eq!(fake.count("POST /token"), 1);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), login("a1", "r1", 8));
}
