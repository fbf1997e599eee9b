//! An actix-web application with a node in it: middleware and a route of its own, and all routes of the node below
//! `/node`, with their limits and thread pools.
//!
//! `cargo run -p example-actix-app`

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::DefaultHeaders;
use actix_web::{App, Error, HttpServer, web};
use node_dev::DevNode;
use node_http::{HttpConfig, ProblemResponse, Routes};

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let routes = routes()?;
    let closing = routes.clone();
    let server = HttpServer::new(move || app(routes.clone()));
    let server = server.bind("127.0.0.1:8080")?.disable_signals().run();
    let handle = server.handle();
    actix_web::rt::spawn(async move {
        // Event streams and WebSockets do not end by themselves.
        if actix_web::rt::signal::ctrl_c().await.is_ok() {
            closing.close();
            handle.stop(true).await;
        }
    });
    Ok(server.await?)
}

/// The routes of the node, which all workers share.
fn routes() -> Result<Routes, Box<dyn std::error::Error>> {
    let chain = DevNode::spawn()?;
    let mut options = HttpConfig::default();
    options.listen.base_path = "/node".parse()?;
    Ok(node_http::configure(chain.node().clone(), options)?)
}

/// Everything that a worker serves.
fn app(
    routes: Routes,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    App::new()
        .app_data(web::Data::new(routes.clone()))
        .route("/height", web::get().to(height))
        .configure(|app| routes.add_to(app))
        .wrap(DefaultHeaders::new().add(("x-served-by", "example")))
}

/// Operations of a node block, so they run on a thread of the node's pool.
async fn height(routes: web::Data<Routes>) -> Result<String, ProblemResponse> {
    let height = routes.run(|node, context| node.block_number(context)).await?;
    Ok(height.to_string())
}

#[cfg(test)]
mod tests;
