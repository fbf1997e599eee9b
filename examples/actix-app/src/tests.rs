#![allow(clippy::unwrap_used)]

use super::*;
use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, call_service, init_service, read_body};

#[actix_web::test]
async fn own_routes_stand_beside_those_of_the_node() {
    let app = init_service(app(routes().unwrap())).await;
    for (path, status, part) in [
        ("/height", StatusCode::OK, "0"),
        ("/node/blockNumber/", StatusCode::OK, r#""BlockNumber":"0""#),
        ("/node/nothing", StatusCode::NOT_FOUND, "urn:uuid:"),
        ("/other", StatusCode::NOT_FOUND, ""),
    ] {
        let response = call_service(&app, TestRequest::get().uri(path).to_request()).await;
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers().get("x-served-by").unwrap(), "example", "{path}");
        let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(body.contains(part), "{path}: {body}");
    }
}

#[actix_web::test]
async fn a_scope_has_the_routes_with_their_limits() {
    let chain = DevNode::spawn().unwrap();
    let (base_path, rate_limit) = ("/api/node".parse().unwrap(), "2".parse().unwrap());
    let mut options = HttpConfig::default();
    options.listen.base_path = base_path;
    options.access.rate_limit = rate_limit;
    options.requests.max_body = 64;
    let routes = node_http::configure(chain.node().clone(), options).unwrap();
    let node = web::scope("/node").configure(|scope| routes.add_to_scope(scope));
    let app = init_service(App::new().service(web::scope("/api").service(node))).await;
    let get = |peer: &str| TestRequest::get().uri("/api/node/chainId").peer_addr(peer.parse().unwrap());
    for (peer, status) in [
        ("10.0.0.1:1000", StatusCode::OK),
        ("10.0.0.1:1001", StatusCode::OK),
        ("10.0.0.1:1002", StatusCode::TOO_MANY_REQUESTS),
        ("10.0.0.2:1000", StatusCode::OK),
    ] {
        let response = call_service(&app, get(peer).to_request()).await;
        assert_eq!(response.status(), status, "{peer}");
        let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(body.contains("/api/node/schemas/"), "{peer}: {body}");
    }
    // JSON-RPC, at the prefix with a slash and without.
    for path in ["/api/node", "/api/node/"] {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
        let message =
            TestRequest::post().uri(path).insert_header(("content-type", "application/json")).set_payload(message);
        let response = call_service(&app, message.peer_addr("10.0.0.5:1".parse().unwrap()).to_request()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
    let long = TestRequest::post().uri("/api/node/call").insert_header(("content-type", "application/json"));
    let long = long.peer_addr("10.0.0.3:1".parse().unwrap()).set_payload("x".repeat(65));
    assert_eq!(call_service(&app, long.to_request()).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    // Control of the chain is for clients on the same machine.
    for (peer, status) in [("127.0.0.1:1", StatusCode::OK), ("10.0.0.4:1", StatusCode::FORBIDDEN)] {
        let mine = TestRequest::post().uri("/api/node/dev/mine").insert_header(("content-type", "application/json"));
        let mine = mine.peer_addr(peer.parse().unwrap()).set_payload("{}");
        assert_eq!(call_service(&app, mine.to_request()).await.status(), status, "{peer}");
    }
}

#[actix_web::test]
async fn a_base_path_that_is_not_that_of_the_scope_is_reported() {
    let chain = DevNode::spawn().unwrap();
    let routes = |base: &str| {
        let mut options = HttpConfig::default();
        options.listen.base_path = base.parse().unwrap();
        node_http::configure(chain.node().clone(), options).unwrap()
    };
    let [wrong, empty, below, right] = ["/node", "", "/node", "/d/node"].map(routes);
    let app = App::new()
        .service(web::scope("/a").configure(|scope| wrong.add_to_scope(scope)))
        .service(web::scope("/b").configure(|scope| empty.add_to_scope(scope)))
        .service(web::scope("/c").configure(|scope| below.add_to(scope)))
        .service(web::scope("/d").service(web::scope("/node").configure(|scope| right.add_to_scope(scope))));
    let app = init_service(app).await;
    for (path, mounted, base) in [
        ("/a/chainId/", "/a", "/node"),
        ("/a/nothing?x", "/a", "/node"),
        ("/b/node_chainId", "/b", ""),
        ("/c/node/chainId/", "/c/node", "/node"),
    ] {
        let response = call_service(&app, TestRequest::get().uri(path).to_request()).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR, "{path}");
        assert_eq!(response.headers().get("content-type").unwrap(), "application/problem+json", "{path}");
        let body: serde_json::Value = actix_web::test::read_body_json(response).await;
        let detail =
            format!("the routes are below {mounted:?} in this application, but the option base_path is {base:?}");
        assert_eq!(body["detail"], detail, "{path}");
    }
    for path in ["/d/node/chainId/", "/d/node/node_chainId", "/d/%6Eode/chainId/"] {
        let response = call_service(&app, TestRequest::get().uri(path).to_request()).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let body = String::from_utf8(read_body(response).await.to_vec()).unwrap();
        assert!(body.contains("/d/node/schemas/"), "{path}: {body}");
    }
}
