// SPDX-License-Identifier: MIT
#pragma once

#include <string_view>

namespace holdfast::redis {

/// A script that runs on the server, and the SHA-1 by which it is called. Scripts are constants: all input goes in KEYS and ARGV.
struct script {
    std::string_view text;
    std::string_view sha1;
};

namespace scripts {

// acquire: KEYS lock [fence]; ARGV token ttl [batch fence-lifetime [proposal max-lead floor]]. Answers the fence (1 without one) where the lock
// is the token's now, also where it was already; otherwise -2 - PTTL, which is not positive. GET is a pcall: a key of another type counts
// as held. PTTL and PEXPIRE are what a renewal and a release need: a user without the right to one of them is told so, and is granted nothing. SET
// goes first: a server without memory lets a script go on that has written. Each call that may be refused has a line of its own: servers name
// the line.

inline constexpr script acquire{R"lua(
local value = redis.pcall('GET', KEYS[1])
if not value then
  redis.call('PTTL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if type(redis.pcall('PEXPIRE', KEYS[1], ARGV[2])) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    redis.call('PEXPIRE', KEYS[1], 1)
  end
  value = ARGV[1]
elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('GET', KEYS[1])
end
if value == ARGV[1] then
  return 1
end
return -2 - redis.call('PTTL', KEYS[1])
)lua",
                                "f90d067abe369ed824f0a88b6636830a4954b1aa"};

inline constexpr script acquire_by_clock{R"lua(
local value = redis.pcall('GET', KEYS[1])
if not value then
  redis.call('PTTL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if type(redis.pcall('PEXPIRE', KEYS[1], ARGV[2])) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    redis.call('PEXPIRE', KEYS[1], 1)
  end
  value = ARGV[1]
elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('GET', KEYS[1])
end
if value == ARGV[1] then
  local time = redis.call('TIME')
  local fence = time[1] * 1000000 + time[2]
  local last = tonumber(redis.call('GET', KEYS[2]) or 0)
  if last >= fence then fence = last + 1 end
  fence = fence + ARGV[3] - 1
  redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[4])
  return fence
end
return -2 - redis.call('PTTL', KEYS[1])
)lua",
                                         "b37d0d458369ef827f51fd85f9a2b65bc5767cca"};

inline constexpr script acquire_by_count{R"lua(
local value = redis.pcall('GET', KEYS[1])
if not value then
  redis.call('PTTL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  if type(redis.pcall('PEXPIRE', KEYS[1], ARGV[2])) == 'table' then
    redis.call('SET', KEYS[1], '', 'PX', 1)
    redis.call('PEXPIRE', KEYS[1], 1)
  end
  value = ARGV[1]
elseif type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('GET', KEYS[1])
end
if value == ARGV[1] then
  local fence = redis.call('INCRBY', KEYS[2], ARGV[3])
  local floor = tonumber(ARGV[7])
  if fence - ARGV[3] < floor then
    local time = redis.call('TIME')
    local clock = time[1] * 1000000 + time[2]
    local proposal = tonumber(ARGV[5])
    if proposal - clock > tonumber(ARGV[6]) then proposal = 0 end
    fence = math.max(clock, proposal, floor) + ARGV[3]
    redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', ARGV[4])
  else
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
  end
  return fence
end
return -2 - redis.call('PTTL', KEYS[1])
)lua",
                                         "b80fcba7a5a41c07704a6e4feedaf3f9fa6e6b59"};

// confirm: KEYS lock fence; ARGV token value fence-lifetime.
inline constexpr script confirm{R"lua(
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local fence = tonumber(redis.call('GET', KEYS[2]) or 0)
if fence < tonumber(ARGV[2]) then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
return 1
)lua",
                                "5fc746923c01e59b70960d8d04a8283396a10550"};

// extend: KEYS lock; ARGV token ttl. Never makes the time left shorter: a copy that comes late must not cut a longer lease.
inline constexpr script extend{R"lua(
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua",
                               "3c05b451fcb31898bd382352b8171ab3d905dec4"};

// regain: KEYS lock; ARGV token ttl. As extend, and it takes a lock that is free.
inline constexpr script regain{R"lua(
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua",
                               "5600757c2ea7d92c98449d98a1cbc22c76c13b1c"};

// release: KEYS lock; ARGV token channel. Answers 1 and how many were told, or 0. PEXPIRE with 0 deletes, as DEL does, and it is known from the acquire
// that the user may call it. A user without the right to publish still releases: waiters
// then look again by the clock.
inline constexpr script release{R"lua(
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], 0)
local told = redis.pcall('PUBLISH', ARGV[2], '')
return type(told) == 'number' and 1 + told or 1
)lua",
                                "2d21ea04116c75d84280a4b19405978091146409"};

}  // namespace scripts

}  // namespace holdfast::redis
