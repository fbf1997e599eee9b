//! Options that several commands share.

pub(crate) mod chain;
pub(crate) mod http;
pub(crate) mod limits;
pub(crate) mod logs;
pub(crate) mod output;
pub(crate) mod server;
pub(crate) mod storage;
