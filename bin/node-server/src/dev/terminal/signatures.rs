//! Signatures of functions and events that many contracts have: those of tokens and of owned contracts.

use node_types::keccak256;
use std::sync::LazyLock;

/// Functions and events of ERC-20, ERC-721, ERC-1155, wrapped ether and owned contracts.
const KNOWN: [&str; 31] = [
    "allowance(address,address)",
    "approve(address,uint256)",
    "balanceOf(address)",
    "balanceOf(address,uint256)",
    "decimals()",
    "deposit()",
    "getApproved(uint256)",
    "isApprovedForAll(address,address)",
    "mint(address,uint256)",
    "name()",
    "owner()",
    "ownerOf(uint256)",
    "safeTransferFrom(address,address,uint256)",
    "safeTransferFrom(address,address,uint256,bytes)",
    "safeTransferFrom(address,address,uint256,uint256,bytes)",
    "setApprovalForAll(address,bool)",
    "supportsInterface(bytes4)",
    "symbol()",
    "tokenURI(uint256)",
    "totalSupply()",
    "transfer(address,uint256)",
    "transferFrom(address,address,uint256)",
    "transferOwnership(address)",
    "withdraw(uint256)",
    "Approval(address,address,uint256)",
    "ApprovalForAll(address,address,bool)",
    "Deposit(address,uint256)",
    "OwnershipTransferred(address,address)",
    "Transfer(address,address,uint256)",
    "TransferSingle(address,address,address,uint256,uint256)",
    "Withdrawal(address,uint256)",
];

static HASHES: LazyLock<Vec<[u8; 32]>> =
    LazyLock::new(|| KNOWN.iter().map(|signature| keccak256(signature.as_bytes()).0).collect());

/// Returns the signature with this hash or, if `hash` has four bytes, this selector.
pub(super) fn of(hash: &[u8]) -> Option<&'static str> {
    let mut all = HASHES.iter().zip(KNOWN);
    all.find(|(known, _)| hash.len() >= 4 && known.starts_with(hash)).map(|(_, signature)| signature)
}
