//! The chain on which a command operates, and the parts that serve it.

pub(crate) mod import_mark;
pub(crate) mod open;
pub(crate) mod publish;
pub(crate) mod wiring;
