//! The state of a generated chain, read from scripted endpoints.

mod reading;
mod resolving;
mod server;
