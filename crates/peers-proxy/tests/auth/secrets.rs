//! No secret is in anything that is kept or shown.

use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};

use peers_proxy::auth::Provider;
use tracing_subscriber::fmt::MakeWriter;

use crate::fake::{Fake, json};
use crate::world::{BEARER, KEY, Setting, World, frozen, options, with_key, with_login};

const ACCESS: &str = "sk-ant-oat01-access-of-the-operator";
const REFRESH: &str = "sk-ant-ort01-refresh-of-the-operator";
const NEW: &str = "sk-ant-oat01-new-access-of-the-operator";
const LEAKED: &str = "text-that-only-the-token-endpoint-knows";

/// All that is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_is_logged_recorded_told_or_shown() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let mut shown = String::new();
    // The last answer renews, into a file that meanwhile cannot be written.
    for (status, body) in [
        (500, format!("{{\"error\":\"{LEAKED} {REFRESH}\"}}")),
        (400, format!("{{\"error\":\"invalid_grant\",\"error_description\":\"{LEAKED} {REFRESH}\"}}")),
        (200, format!("{{\"access\":\"{LEAKED}\"}}")),
        (
            200,
            format!("{{\"access_token\":\"{NEW}\",\"refresh_token\":\"{REFRESH}2\",\"expires_in\":28800}}"),
        ),
        (200, format!("{{\"access_token\":\"{NEW}\\u0007\",\"expires_in\":28800}}")),
    ] {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("login.json");
        let place = file.clone();
        let fake = Fake::start(move |asked| {
            if asked.line != "POST /token" {
                return json(401, "{}");
            }
            // A directory in its place: the tool is gone.
            std::fs::remove_file(&place).unwrap();
            std::fs::create_dir(&place).unwrap();
            json(status, &body)
        })
        .await;
        std::fs::write(&file, crate::login::login(ACCESS, REFRESH, 8)).unwrap();
        let services =
            vec![with_login(Provider::Anthropic, &fake, &file, "/token"), with_key(Provider::OpenAi, &fake)];
        write!(shown, "{:?}", options(tmp.path(), services.clone(), Setting::new(), frozen())).unwrap();
        let world = World::start_in(tmp, services, Setting::new()).await;
        for line in [
            "POST /anthropic/v1/messages",
            "POST /anthropic/v1/messages",
            "POST /openai/v1/responses",
            &format!("GET /anthropic/{KEY}"),
            "GET /openai/%2f",
        ] {
            write!(shown, "{:?}", world.ask(line, "", "{}").await).unwrap();
        }
        shown += &world.log();
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("cannot renew") && log.contains("login.json"), "the log works: {log}");
    for secret in [ACCESS, REFRESH, NEW, LEAKED, KEY, BEARER] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
