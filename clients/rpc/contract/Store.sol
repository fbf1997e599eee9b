// SPDX-License-Identifier: MIT OR Apache-2.0
pragma solidity 0.8.37;

// Deployed by the clients: a setter, an event, a revert. Store.json is the output of `solcjs --abi --bin --optimize`,
// version 0.8.37.
contract Store {
    event Stored(address indexed who, uint256 indexed key, uint256 value);

    error TooLarge(uint256 value, uint256 limit);

    /// Slot 0.
    mapping(uint256 => uint256) public values;
    /// Slot 1.
    uint256 public count;

    function set(uint256 key, uint256 value) external payable {
        if (value > 1000) revert TooLarge(value, 1000);
        require(value != 13, "unlucky");
        values[key] = value;
        count++;
        emit Stored(msg.sender, key, value);
    }
}
