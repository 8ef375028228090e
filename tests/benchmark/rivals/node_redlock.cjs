// SPDX-License-Identifier: MIT
//
// One process of a crowd, with node-redlock: node_redlock.cjs SECONDS SECTION_US PORT...; as redis_py.py. It retries as
// it does by default, and gives its partial votes back when that is over. Then it is called again, until it has the
// lock. Its attempts may miss each other for long: what waits at the end is counted as that long a wait, and given up.
// The name is its own: what that leaves behind would be in the way of the others.
"use strict";

const { default: Redlock, ExecutionError } = require("redlock");
const Redis = require("ioredis");
const { performance } = require("perf_hooks");

const [seconds, section, ...ports] = process.argv.slice(2).map(Number);
const redlock = new Redlock(ports.map((port) => new Redis(port)));
redlock.on("error", () => {});

let begun = 0;

function unlessRefused(error) {
  if (!(error instanceof ExecutionError)) throw error;
}

async function once(name) {
  begun = performance.now();
  let lock;
  while (!lock) lock = await redlock.acquire([name], 2000).catch(unlessRefused);
  const waited = (performance.now() - begun) / 1000;
  if (section > 0) await new Promise((done) => setTimeout(done, section / 1000));
  await lock.release().catch(unlessRefused); // its lease may be over
  return waited;
}

async function main() {
  await once("warm-up of " + process.pid);
  console.log("ready");
  await new Promise((go) => process.stdin.once("data", go));
  const end = performance.now() + seconds * 1000;
  let sections = 0;
  let longest = 0;
  const tell = () => {
    console.log(sections, Math.max(longest, (performance.now() - begun) / 1000));
    process.exit(0);
  };
  setTimeout(tell, seconds * 1000 + 100);
  while (performance.now() < end) {
    longest = Math.max(longest, await once("orders of node-redlock"));
    ++sections;
  }
  tell();
}

main();
