#![allow(clippy::unwrap_used)]

use super::*;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
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
        let (mut router, _) = router(path.clone()).unwrap();
        let account = Accounts::derive(&AccountOptions::default()).unwrap()[0].address();
        let (status, balance) = respond(&mut router, get(&format!("/balance/{account:#x}"))).await;
        assert_eq!((status, balance.len()), (StatusCode::OK, 23), "{path:?}: {balance}");
        assert_eq!(respond(&mut router, get("/balance/0x12")).await.0, StatusCode::BAD_REQUEST);

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

/// What a handler returns if the node refuses: problems with pages below the base path, and of the request if it is given.
#[tokio::test]
async fn handlers_have_the_problems_of_the_service() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let mut options = HttpConfig::default();
    options.listen.base_path = "/node".parse().unwrap();
    let service = NodeService::new(chain.node().clone(), options).unwrap();
    let height = service.run(|node, context| node.block_number(context)).await.unwrap();
    assert_eq!(height, 0);
    let missing = BlockId::number(7);
    let error =
        service.run(move |node, context| node.get_balance(context, Address::zero(), missing)).await.unwrap_err();
    assert_eq!((error.status, error.problem_type.as_str()), (404, "/node/problems/block-not-found"));
    assert_eq!(error.errors[0].location, "body.BlockNumber");

    let context = node_core::context::Context::unbounded();
    let error = chain.get_balance(&context, Address::zero(), missing).unwrap_err();
    let request = Request::get("/balance?BlockNumber=7").header("x-request-id", "a-7").body(()).unwrap();
    let problem = service.problem_of(&request, error);
    assert_eq!(
        (problem.instance.as_str(), problem.errors[0].location.as_str()),
        ("urn:request-id:a-7", "query.BlockNumber")
    );
    assert_eq!(problem.errors[0].value.as_ref().map(|value| value.0.get()), Some("\"7\""));
    let problem = service.problem(node_core::node::NodeError::FilterNotFound);
    assert_eq!(problem.problem_type, "/node/problems/filter-not-found");
}

#[tokio::test]
async fn event_streams_are_sent_as_they_are_read() {
    let (mut router, service) = router(None).unwrap();
    let response = router.call(get("/node/events/")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    // Dropping the response ends the stream.
    drop(response);
    assert!(respond(&mut router, get("/node/blockNumber/")).await.0.is_success());
    // So does closing the service, also for streams that are opened later.
    let response = router.call(get("/node/events/")).await.unwrap();
    service.close();
    assert!(to_bytes(response.into_body(), 1 << 20).await.is_ok());
    assert!(respond(&mut router, get("/node/events/")).await.1.contains("shutting down"));
}

#[tokio::test]
async fn the_rate_is_that_of_the_address_in_the_extensions() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let mut options = HttpConfig::default();
    options.access.rate_limit = "1".parse().unwrap();
    let mut service = NodeService::new(chain.node().clone(), options).unwrap();
    for (peer, of_axum, status) in
        [("10.0.0.1:1", false, 200), ("10.0.0.1:2", true, 429), ("10.0.0.2:1", true, 200), ("10.0.0.2:2", false, 429)]
    {
        let (mut request, address) = (get("/chainId/"), peer.parse::<SocketAddr>().unwrap());
        if of_axum {
            request.extensions_mut().insert(axum::extract::ConnectInfo(address));
        } else {
            request.extensions_mut().insert(address);
        }
        assert_eq!(service.call(request).await.unwrap().status(), status, "{peer}");
    }
}

/// Also to those that a server of HTTP would not pass on, and to those whose bodies fail.
#[tokio::test]
async fn a_service_responds_to_every_request() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let mut service = NodeService::new(chain.node().clone(), HttpConfig::default()).unwrap();
    let json =
        |method: &str, uri: &str| Request::builder().method(method).uri(uri).header("content-type", "application/json");
    let handshake = |uri: &str| {
        let request = json("GET", uri).header("upgrade", "websocket").header("connection", "upgrade");
        let request = request.header("accept", "application/json").header("sec-websocket-version", "13");
        request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
    };
    let broken = futures_util::stream::iter([Ok("{"), Err(std::io::Error::other("the client has left"))]);
    let long = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("          ".repeat(10_000)));
    let text = |text: &str| Body::from(text.to_owned());
    let cases = [
        (json("GET", "/chainId/").body(text("")), 200),
        (json("GET", "http://node.example/chainId/").body(text("")), 403),
        (json("POST", "/call/").body(text("{")), 400),
        (json("POST", "/call/").body(text(r#"{"BlockNumber": []}"#)), 422),
        (json("POST", "/call/").body(Body::from_stream(broken)), 400),
        (json("POST", "/call/").body(Body::from_stream(long)), 413),
        (json("OPTIONS", "*").body(text("")), 404),
        (json("CONNECT", "node.example:443").body(text("")), 403),
        (json("BREW", "/chainId/").body(text("")), 405),
        (json("GET", "/%ff/").body(text("")), 400),
        (json("GET", "/chainId/").header("x-name", "\u{e9}").body(text("")), 200),
        (json("GET", "/chainId/").version(axum::http::Version::HTTP_3).body(text("")), 200),
        (json("GET", "/ws").header("upgrade", "websocket").header("connection", "upgrade").body(text("")), 426),
        (handshake("/ws").body(text("")), 426),
    ];
    for (request, expected) in cases {
        let request = request.unwrap();
        let name = format!("{} {}", request.method(), request.uri());
        let response = service.call(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(Body::new(response.into_body()), 1 << 20).await.unwrap();
        let body = String::from_utf8_lossy(&body);
        assert!(status == expected && body.starts_with(r#"{"$schema":"#), "{name}: {status} {body}");
    }
}

#[tokio::test]
async fn a_service_outlives_its_chain_and_its_clones_and_requests_that_are_dropped() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let mut service = NodeService::new(chain.node().clone(), HttpConfig::default()).unwrap();
    let mut clone = service.clone();
    drop(chain);
    drop(service.call(get("/chainId/")));
    drop(service);
    assert_eq!(clone.call(get("/chainId/")).await.unwrap().status(), StatusCode::OK);
}

#[test]
fn a_service_refuses_options_with_which_it_could_serve_nothing() {
    let chain = node_dev::DevNode::spawn().unwrap();
    let mut options = HttpConfig::default();
    options.access.api = vec!["nothing".parse().unwrap()];
    let error = NodeService::new(chain.node().clone(), options).err().unwrap();
    assert!(matches!(&error, node_http::ServeError::UnknownApi { name, .. } if name == "nothing"), "{error}");
    let mut options = HttpConfig::default();
    options.clients.max_requests = 0;
    let error = NodeService::new(chain.node().clone(), options).err().unwrap();
    assert_eq!(error.to_string(), "`max_requests` must be at least 1");
}

#[test]
fn problems_are_responses() {
    let response =
        axum::response::IntoResponse::into_response(ProblemResponse::from(node_core::node::NodeError::FilterNotFound));
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
}
