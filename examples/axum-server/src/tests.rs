#![allow(clippy::unwrap_used)]

use super::*;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use tower_service::Service;

async fn respond(router: &mut Router, request: Request<Body>) -> (StatusCode, String) {
    let response = router.call(request).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

#[tokio::test]
async fn every_backend_is_served_beside_own_routes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().map(str::to_owned);
    for path in [None, path("chain"), path("chain.sqlite")] {
        let mut router = router(path.clone()).unwrap();
        let account = Accounts::derive(&AccountOptions::default()).unwrap()[0].address();
        let (status, balance) = respond(&mut router, get(&format!("/balance/{account:#x}"))).await;
        assert_eq!((status, balance.len()), (StatusCode::OK, 23), "{path:?}: {balance}");

        for spelling in ["/node/blockNumber/", "/node/blockNumber", "/node/node_blockNumber"] {
            let (status, body) = respond(&mut router, get(spelling)).await;
            assert!(status.is_success() && body.contains(r#""BlockNumber":"0""#), "{spelling}: {status} {body}");
            assert!(body.contains("/node/schemas/Output_blockNumber.json"), "{body}");
        }
        let logs = Request::post("/node/getLogs/").header("content-type", "application/json");
        let (status, body) = respond(&mut router, logs.body(Body::from(r#"{"FromBlock": "x"}"#)).unwrap()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(body.contains("body.FromBlock"), "{body}");
        let (status, body) = respond(&mut router, get("/node/nothing")).await;
        assert!(status == StatusCode::NOT_FOUND && body.contains("urn:uuid:"), "{body}");
        assert_eq!(respond(&mut router, get("/other")).await.0, StatusCode::NOT_FOUND);
        let rpc = Request::post("/node").header("content-type", "application/json");
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}"#;
        let (status, body) = respond(&mut router, rpc.body(Body::from(message)).unwrap()).await;
        assert!(status.is_success() && body.contains("0x"), "{status} {body}");
    }
}

#[tokio::test]
async fn event_streams_are_sent_as_they_are_read() {
    let mut router = router(None).unwrap();
    let response = router.call(get("/node/events/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    // Dropping the response ends the stream.
    drop(response);
    assert!(respond(&mut router, get("/node/blockNumber/")).await.0.is_success());
}

#[tokio::test]
async fn the_rate_is_that_of_the_address_in_the_extensions() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let options = HttpConfig { rate_limit: "1".parse().unwrap(), ..HttpConfig::default() };
    let mut service = NodeService::new(chain.node().clone(), options).unwrap();
    for (peer, status) in [("10.0.0.1:1", 200), ("10.0.0.1:2", 429), ("10.0.0.2:1", 200)] {
        let mut request = get("/chainId/");
        request.extensions_mut().insert(peer.parse::<std::net::SocketAddr>().unwrap());
        assert_eq!(service.call(request).await.unwrap().status(), status, "{peer}");
    }
}
