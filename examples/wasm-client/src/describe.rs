//! What the host is shown.

use node_types::verify_proof;
use node_types::wire::{BlockHeader, GetProofInput};
use std::error::Error;

/// Verifies the header of a getHeader response, the request and the response of getProof, on a line each.
pub(crate) fn describe(texts: &str) -> Result<String, Box<dyn Error>> {
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
