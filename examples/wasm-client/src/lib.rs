//! Verifies proofs in WebAssembly: the host fetches a header and the response of getProof, and passes their texts in.
//!
//! `client.mjs` is a host for Node.js. Texts go through a buffer, so no code here is unsafe except for the attribute
//! that exports a function.
#![allow(unsafe_code, reason = "the attribute that exports a function")]

mod describe;

use describe::describe;
use std::sync::{Mutex, PoisonError};

/// What the host writes, and then reads.
static BUFFER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Makes room for `length` bytes, and returns where they begin.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *const u8 {
    let mut buffer = BUFFER.lock().unwrap_or_else(PoisonError::into_inner);
    *buffer = vec![0; length];
    buffer.as_ptr()
}

/// Verifies the texts in the buffer: the header of a getHeader response, the request and the response of getProof, on a
/// line each. Leaves a sentence in the buffer, and returns its length.
#[unsafe(no_mangle)]
pub extern "C" fn verify() -> usize {
    let mut buffer = BUFFER.lock().unwrap_or_else(PoisonError::into_inner);
    let sentence = describe(&String::from_utf8_lossy(&buffer)).unwrap_or_else(|error| format!("not proven: {error}"));
    *buffer = sentence.into_bytes();
    buffer.len()
}

/// Returns where the buffer begins.
#[unsafe(no_mangle)]
pub extern "C" fn buffer() -> *const u8 {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}
