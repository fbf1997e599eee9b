// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Pool, Router, Token} from "../src/Swap.sol";
import {Facts, Log, vm} from "../src/Facts.sol";

/// Run with `--fork-url` on a fork: forge reads its state from there, and keeps its own changes.
contract ForkTest is Facts {
    address constant DEALT = 0x00000000000000000000000000000000000dEA17;

    function test_fork_continues_the_chain() external view {
        require(block.number >= number(".block"), "another block");
        require(block.chainid == 31337, "another chain id");
        require(token(0).balanceOf(account(".whale")) > 1000 ether, "the rich account is poor");
    }

    function test_sends_from_a_rich_account() external {
        address whale = account(".whale");
        uint256 before = token(0).balanceOf(DEALT);
        vm.prank(whale);
        token(0).transfer(DEALT, 1000 ether);
        require(token(0).balanceOf(DEALT) == before + 1000 ether, "not received");
    }

    function test_deals_tokens_and_swaps_through_two_pools() external {
        bytes32 slot = keccak256(abi.encode(DEALT, uint256(0)));
        vm.store(address(token(0)), slot, bytes32(uint256(5000 ether)));
        require(uint256(vm.load(address(token(0)), slot)) == 5000 ether, "not stored");
        vm.deal(DEALT, 1 ether);
        uint256 expected = pays(pool(1), token(1), pays(pool(0), token(0), 100 ether));
        uint256 had = token(2).balanceOf(DEALT);
        vm.startPrank(DEALT);
        token(0).approve(address(router()), 100 ether);
        uint256 received = router().swap(100 ether, expected, token(0), path(), block.timestamp);
        vm.stopPrank();
        require(received == expected && token(2).balanceOf(DEALT) == had + expected, "received something else");
    }

    function test_time_travel() external {
        uint256 deadline = block.timestamp + 3600;
        vm.warp(block.timestamp + 1 days);
        vm.expectRevert(abi.encodeWithSelector(Router.Expired.selector, deadline, block.timestamp));
        router().swap(1, 0, token(0), path(), deadline);
    }

    function test_snapshot_and_revert() external {
        uint256 before = token(0).balanceOf(DEALT);
        uint256 id = vm.snapshotState();
        vm.prank(account(".whale"));
        token(0).transfer(DEALT, 1 ether);
        require(vm.revertToState(id), "not reverted");
        require(token(0).balanceOf(DEALT) == before, "still there");
    }

    function test_rolls_to_an_earlier_block_and_back() external {
        address trader = account(".trader");
        uint256 newest = token(2).balanceOf(trader);
        uint256 fork = vm.activeFork();
        vm.rollFork(fork, number(".early") - 1);
        uint256 before = token(2).balanceOf(trader);
        vm.rollFork(fork, number(".early"));
        uint256 with = token(2).balanceOf(trader);
        require(before < with && with < newest, "the balance did not grow");
        require(block.number == number(".early"), "another block");
    }

    function test_rolls_before_a_transaction() external {
        uint256 fork = vm.activeFork();
        vm.rollFork(fork, number(".early"));
        uint256 with = token(2).balanceOf(account(".trader"));
        vm.rollFork(fork, vm.parseJsonBytes32(facts(), ".transaction"));
        require(token(2).balanceOf(account(".trader")) < with, "the transaction was executed");
    }

    function test_reads_logs_from_before_the_fork() external {
        bytes32[] memory topics = new bytes32[](1);
        topics[0] = Pool.Swapped.selector;
        Log[] memory logs = vm.eth_getLogs(0, number(".block"), address(pool(0)), topics);
        require(logs.length == number(".swaps"), "another number of logs");
        require(logs[1].blockNumber == number(".early"), "another block");
    }

    function test_asks_the_server() external {
        bytes memory answer = vm.rpc("eth_getBlockByNumber", "[\"latest\", false]");
        require(answer.length > 0, "no block");
    }

    function pays(Pool from, Token paid, uint256 given) private view returns (uint256) {
        return from.reserves(from.other(paid)) * given / (from.reserves(paid) + given);
    }
}
