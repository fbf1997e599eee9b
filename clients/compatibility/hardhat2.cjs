// Hardhat 2: the helpers find the network of the project.

const { network } = require("hardhat");
const helpers = require("@nomicfoundation/hardhat-network-helpers");

const request = (method, params = []) => network.provider.request({ method, params });
import("./helpers.mjs").then(({ run }) => run("network helpers, Hardhat 2", helpers, request));
