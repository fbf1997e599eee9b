// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Pool, Router, Token} from "./Swap.sol";

struct Log {
    address emitter;
    bytes32[] topics;
    bytes data;
    bytes32 blockHash;
    uint64 blockNumber;
    bytes32 transactionHash;
    uint64 transactionIndex;
    uint256 logIndex;
    bool removed;
}

/// The cheatcodes of forge that are used here.
interface Vm {
    function activeFork() external view returns (uint256);
    function deal(address account, uint256 balance) external;
    function eth_getLogs(uint256 from, uint256 to, address target, bytes32[] memory topics) external view returns (Log[] memory);
    function expectRevert(bytes calldata data) external;
    function load(address target, bytes32 slot) external view returns (bytes32);
    function parseJsonAddress(string calldata json, string calldata key) external pure returns (address);
    function parseJsonAddressArray(string calldata json, string calldata key) external pure returns (address[] memory);
    function parseJsonBytes32(string calldata json, string calldata key) external pure returns (bytes32);
    function parseJsonUint(string calldata json, string calldata key) external pure returns (uint256);
    function prank(address from) external;
    function readFile(string calldata path) external view returns (string memory);
    function revertToState(uint256 id) external returns (bool);
    function rollFork(uint256 fork, uint256 number) external;
    function rollFork(uint256 fork, bytes32 transaction) external;
    function rpc(string calldata method, string calldata parameters) external returns (bytes memory);
    function snapshotState() external returns (uint256);
    function startBroadcast(address from) external;
    function startPrank(address from) external;
    function stopBroadcast() external;
    function stopPrank() external;
    function store(address target, bytes32 slot, bytes32 value) external;
    function warp(uint256 time) external;
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

/// What the chain that is forked has, from facts.json.
abstract contract Facts {
    function facts() internal view returns (string memory) {
        return vm.readFile("./facts.json");
    }

    function number(string memory key) internal view returns (uint256) {
        return vm.parseJsonUint(facts(), key);
    }

    function account(string memory key) internal view returns (address) {
        return vm.parseJsonAddress(facts(), key);
    }

    function token(uint256 index) internal view returns (Token) {
        return Token(vm.parseJsonAddressArray(facts(), ".tokens")[index]);
    }

    function pool(uint256 index) internal view returns (Pool) {
        return Pool(vm.parseJsonAddressArray(facts(), ".pools")[index]);
    }

    function path() internal view returns (Pool[] memory pools) {
        pools = new Pool[](2);
        (pools[0], pools[1]) = (pool(0), pool(1));
    }

    function router() internal view returns (Router) {
        return Router(account(".router"));
    }
}
