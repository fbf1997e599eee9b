// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

import {Pool, Token} from "../src/Swap.sol";
import {Facts, vm} from "../src/Facts.sol";

/// Run with `--broadcast --unlocked`: the rich account deploys a token and a pool, and swaps through two pools.
contract Swap is Facts {
    function run() external {
        address whale = account(".whale");
        vm.startBroadcast(whale);
        Token deployed = new Token(1000 ether);
        Pool made = new Pool(token(0), deployed);
        token(0).transfer(address(made), 10 ether);
        deployed.transfer(address(made), 10 ether);
        made.fill();
        token(0).approve(address(router()), 50 ether);
        router().swap(50 ether, 1, token(0), path(), block.timestamp + 1 hours);
        vm.stopBroadcast();
    }
}
