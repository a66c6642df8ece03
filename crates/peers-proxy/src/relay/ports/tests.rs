//! Tests of the relay, over real sockets.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener, UnixStream};

use super::*;

async fn pair(listener: &UnixListener, port: SocketAddr) -> (TcpStream, UnixStream) {
    let client = TcpStream::connect(port).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

#[tokio::test]
async fn each_port_leads_to_its_socket() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["one.sock", "two.sock"].map(|name| dir.path().join(name));
    let hosts = paths.clone().map(|path| UnixListener::bind(path).unwrap());
    let relay = serve(paths.map(|path| (0, path)).to_vec()).unwrap();
    for (host, port) in hosts.iter().zip(relay.ports()) {
        let (mut client, mut host) = pair(host, *port).await;
        client.write_all(b"up").await.unwrap();
        host.write_all(b"down").await.unwrap();
        let (mut up, mut down) = ([0; 2], [0; 4]);
        host.read_exact(&mut up).await.unwrap();
        client.read_exact(&mut down).await.unwrap();
        assert_eq!((&up, &down), (b"up", b"down"));
    }
}

#[tokio::test]
async fn a_side_that_closes_its_half_leaves_the_other_one_open() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let host = UnixListener::bind(&path).unwrap();
    let relay = serve(vec![(0, path)]).unwrap();
    let (mut client, mut host) = pair(&host, relay.ports()[0]).await;
    client.write_all(b"question").await.unwrap();
    client.shutdown().await.unwrap();
    let mut question = String::new();
    host.read_to_string(&mut question).await.unwrap();
    host.write_all(b"answer").await.unwrap();
    host.shutdown().await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert_eq!((question.as_str(), answer.as_str()), ("question", "answer"));
}

#[tokio::test]
async fn a_connection_beyond_the_limit_waits_until_one_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("host.sock");
    let host = UnixListener::bind(&path).unwrap();
    let relay = serve(vec![(0, path)]).unwrap();
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(pair(&host, relay.ports()[0]).await);
    }
    let mut late = TcpStream::connect(relay.ports()[0]).await.unwrap();
    late.write_all(b"late").await.unwrap();
    drop(open.pop());
    let mut host = host.accept().await.unwrap().0;
    let mut bytes = [0; 4];
    host.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"late");
}

#[tokio::test]
async fn a_socket_that_is_not_there_closes_the_connection_and_a_taken_port_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let relay = serve(vec![(0, dir.path().join("none.sock"))]).unwrap();
    let mut client = TcpStream::connect(relay.ports()[0]).await.unwrap();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap_or(0), 0);
    let taken = relay.ports()[0].port();
    let error = serve(vec![(0, dir.path().join("a")), (taken, dir.path().join("b"))]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    drop(relay);
}
