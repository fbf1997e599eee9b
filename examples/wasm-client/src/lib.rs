//! Verifies proofs in WebAssembly: the host fetches a header and the response of getProof, and passes their texts in.
//!
//! `client.mjs` is a host for Node.js. Texts go through a buffer, so no code here is unsafe except for the attribute
//! that exports a function.
#![allow(unsafe_code, reason = "the attribute that exports a function")]

use node_types::verify_proof;
use node_types::wire::{BlockHeader, GetProofInput};
use std::error::Error;
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

fn describe(texts: &str) -> Result<String, Box<dyn Error>> {
    let mut lines = texts.lines();
    let mut line = || lines.next().ok_or("three lines are expected");
    let header = serde_json::from_str::<BlockHeader>(line()?)?.header()?;
    let request: GetProofInput = serde_json::from_str(line()?)?;
    let account = verify_proof(&header, &request, &serde_json::from_str(line()?)?)?;
    let balance = account.map(|account| account.balance).unwrap_or_default();
    Ok(format!("proven by block {} ({:#x}): {} has {balance} wei", header.number, header.hash(), request.address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_types::consensus::{EMPTY_ROOT, Header};
    use node_types::wire::GetProofOutput;

    #[test]
    fn describes_what_is_proven() -> Result<(), Box<dyn Error>> {
        let empty = Header { state_root: EMPTY_ROOT, ..Header::default() };
        let header = BlockHeader {
            hash: Some(empty.hash().into()),
            receipts_root: empty.receipts_root.into(),
            sha3_uncles: empty.ommers_hash.into(),
            state_root: EMPTY_ROOT.into(),
            transactions_root: empty.transactions_root.into(),
            ..BlockHeader::default()
        };
        let mut response = GetProofOutput {
            code_hash: node_types::KECCAK_EMPTY.into(),
            storage_hash: EMPTY_ROOT.into(),
            ..GetProofOutput::default()
        };
        let texts = |response: &GetProofOutput| -> Result<String, Box<dyn Error>> {
            let (header, request) =
                (serde_json::to_string(&header)?, serde_json::to_string(&GetProofInput::default())?);
            Ok(format!("{header}\n{request}\n{}", serde_json::to_string(response)?))
        };
        assert!(describe(&texts(&response)?)?.ends_with(" has 0 wei"));
        response.nonce = 1_u64.into();
        assert!(describe(&texts(&response)?).is_err());
        assert!(describe("{}").is_err());
        Ok(())
    }
}
