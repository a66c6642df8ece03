//! The way out over TLS, through the policy.

use std::net::IpAddr;
use std::sync::Arc;

use peers_proxy::auth::{PlainHttp, Provider, Service, ServiceUrl};
use peers_proxy::egress::{AllowEntry, HostName, Lookup, LookupFuture, Policy, PolicyFile, Resolver};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::fake::{Fake, json};
use crate::world::{KEY, Setting, World, with_key};

#[derive(Debug)]
struct Here;

impl Lookup for Here {
    fn lookup<'a>(&'a self, _: &'a HostName) -> LookupFuture<'a> {
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) })
    }
}

/// A service whose certificate is for `models.example`.
async fn fake() -> Fake {
    let certificate = include_bytes!("pki/server.der").as_slice().into();
    let key = PrivatePkcs8KeyDer::from(include_bytes!("pki/server-key.der").as_slice()).into();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Fake::start_with(
        |_| json(200, "{}"),
        move |stream| {
            let accepting = acceptor.accept(stream);
            async move { accepting.await.ok() }
        },
    )
    .await
}

/// A proxy that may connect to `allowed`, asked for a service at `host`.
async fn asked(fake: &Fake, host: &str, allowed: &str, private: &[&str]) -> (World, crate::world::Told) {
    let port = fake.address.port();
    let entry = AllowEntry {
        host: Some(allowed.to_owned()),
        ports: Some(vec![port]),
        private_ok: private.iter().map(|cidr| (*cidr).to_owned()).collect(),
        ..AllowEntry::default()
    };
    let policy = Policy::new(&PolicyFile { v: 1, allow: vec![entry] }).unwrap();
    let setting = Setting { policy: policy.resolving_with(Resolver::new(Arc::new(Here))), ..Setting::new() };
    let url = ServiceUrl::parse(&format!("https://{host}:{port}/base"), PlainHttp::Refused).unwrap();
    let service = Service { url, ..with_key(Provider::Anthropic, fake) };
    let world = World::start_with(vec![service], setting).await;
    let told = world.message().await;
    (world, told)
}

#[tokio::test]
async fn a_service_is_reached_over_tls_by_its_name() {
    let fake = fake().await;
    let (_world, told) = asked(&fake, "models.example", "models.example", &["127.0.0.0/8"]).await;
    assert_eq!(told.status, 200, "{}", told.body);
    let [asked] = &fake.asked()[..] else { panic!("one request") };
    assert_eq!((asked.line.as_str(), asked.header("x-api-key")), ("POST /base/v1/messages", KEY));
}

#[tokio::test]
async fn nothing_is_sent_to_a_host_that_is_not_the_right_one() {
    let fake = fake().await;
    for (host, allowed, private, why) in [
        ("models.example", "other.example", &["127.0.0.0/8"][..], "not on the allow-list"),
        ("models.example", "models.example", &[], "private or special address"),
        ("other.example", "other.example", &["127.0.0.0/8"], "connect to `other.example`"),
    ] {
        let (world, told) = asked(&fake, host, allowed, private).await;
        assert_eq!((told.status.as_u16(), told.code().as_str()), (502, "dial"), "{host}");
        assert!(told.body.contains(why), "{}", told.body);
        assert_eq!(world.reasons(), ["dial"]);
    }
    assert_eq!(fake.asked().len(), 0);
}
