//! A minimal server of /health and getStorageAt, which `scripts/bench.py` compares with the whole server.
//!
//! It only decodes the body, calls the node and writes the response, without ids, limits or a log.

use actix_web::http::StatusCode;
use actix_web::{App, HttpResponse, HttpServer, web};
use node_core::context::Context;
use node_core::node::Node;
use node_dev::DevNode;
use node_types::wire::{GetStorageAtInput, GetStorageAtOutput, Word, decode_body};
use std::error::Error;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let chain = DevNode::builder().spawn()?;
    let node: web::Data<Node> = chain.node().clone().into();
    let server = HttpServer::new(move || {
        App::new()
            .app_data(node.clone())
            .route("/health", web::get().to(health))
            .route("/getStorageAt/", web::post().to(get_storage_at))
    })
    .bind(("127.0.0.1", 0))?;
    for address in server.addrs() {
        println!("listening on http://{address}");
    }
    Ok(server.run().await?)
}

async fn health() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(r#"{"Status":"ok"}"#)
}

async fn get_storage_at(node: web::Data<Node>, body: web::Bytes) -> HttpResponse {
    let input = match decode_body::<GetStorageAtInput>(&body) {
        Ok(input) => input,
        Err(error) => return HttpResponse::build(StatusCode::BAD_REQUEST).body(error.to_string()),
    };
    match node.get_storage_at(&Context::unbounded(), input.address.0, input.position.0, input.block_number) {
        Ok(value) => HttpResponse::Ok().json(GetStorageAtOutput { value: Word(value) }),
        Err(error) => HttpResponse::build(StatusCode::NOT_FOUND).body(error.to_string()),
    }
}
