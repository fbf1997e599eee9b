//! The tests of the examples, which stand beside their programs.
#![allow(dead_code, unreachable_pub, reason = "their main functions and other programs use them")]

#[path = "../../../examples/actix-app/src/main.rs"]
mod actix_app;
#[path = "../../../examples/axum-server/src/main.rs"]
mod axum_server;
#[path = "../../../examples/evm-extension/src/main.rs"]
mod evm_extension;
#[path = "../../../examples/sqlite-backend/src/lib.rs"]
mod sqlite_backend;
#[path = "../../../examples/wasm-client/src/describe.rs"]
mod wasm_client;
