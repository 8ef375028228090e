// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts::redisson {

// The scripts of locks that Redisson shares: its layout, from what its clients do and not from its code.
//
// - The key is a HASH, field of the owner -> how often it has the lock. It expires with the lease. An owner is
//   "<uuid>:<thread>"; ours is its token, written as a uuid, and a thread 1. A token is one hold: its count is 1.
// - A mutex is held if there is the key. A release publishes '0' on `redisson_lock__channel:{<name>}`.
// - Of a read-write lock the hash has a field `mode`, 'read' or 'write'. A writer's field is "<owner>:write". Each hold
//   of a reader has a key that expires with it, "{<name>}:<owner>:rwlock_timeout:<number of the hold>"; the hash lasts
//   as long as the last of them. A reader whose keys are gone is none, though its field may be there.
// - Its releases are published on `redisson_rwlock:{<name>}`: '0' wakes one waiter of each client, '1' all of them.
// - The fence has no expiry, as Redisson's clients only count it up. It is not less than the clock here, so that it
//   increases even if the server forgets it.
//
// Redisson's readers renew the keys of all readers, and so may shorten a lease that is longer than theirs. Its readers
// and writers do not see a hash without `mode`, that of a mutex; ours do.

namespace parts {

inline constexpr std::string_view owner_of = R"lua(
local function owner_of(token)
  return table.concat({string.sub(token, 1, 8), string.sub(token, 9, 12), string.sub(token, 13, 16),
                       string.sub(token, 17, 20), string.sub(token, 21)}, '-') .. ':1'
end
)lua";

inline constexpr std::string_view owner = "local field = owner_of(ARGV[1])\n";
inline constexpr std::string_view writer = "local field = owner_of(ARGV[1]) .. ':write'\n";

inline constexpr std::string_view look = R"lua(
local value = redis.pcall('HEXISTS', KEYS[1], field)
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('HEXISTS', KEYS[1], field)
end
local left = redis.call('PTTL', KEYS[1])
local refused = left ~= -2 and value ~= 1
)lua";

// Of a key that may not be read it is not known what it has.
inline constexpr std::string_view may_read_fence = R"lua(
if type(kept) == 'table' and not string.find(kept.err, 'WRONGTYPE', 1, true) then
  redis.call('GETRANGE', KEYS[2], 0, 32)
end
)lua";

// Without an expiry, as its other users do not expect one.
inline constexpr std::string_view keep_fence = "redis.call('SET', KEYS[2], string.format('%.0f', fence))\n";

// PEXPIRE comes first, too, when there is nothing that it could do: a user without the right to it takes nothing.
inline constexpr std::string_view take = R"lua(
if left == -2 then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.call('HSET', KEYS[1], field, 1)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
)lua";

inline constexpr std::string_view extend = R"lua(
if redis.pcall('HEXISTS', KEYS[1], field) ~= 1 then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua";

inline constexpr std::string_view release = R"lua(
if redis.pcall('HEXISTS', KEYS[1], field) ~= 1 then return 0 end
redis.call('PEXPIRE', KEYS[1], 0)
)lua";

inline constexpr std::string_view wake_one = "local message = '0'\n";
inline constexpr std::string_view wake_all = "local message = '1'\n";

inline constexpr std::string_view tell = R"lua(
local told = redis.pcall('PUBLISH', ARGV[2], message)
return type(told) == 'number' and 1 + told or 1
)lua";

inline constexpr std::string_view timeouts = "local timeouts = KEYS[2]\n";
inline constexpr std::string_view timeouts_after_fence = "local timeouts = KEYS[3]\n";

// `rest_of`: how long the lease of a reader lasts that has so many holds; negative: it is over. `rest_of_others`: the
// longest of those of all readers but one; those that are over are dropped.
inline constexpr std::string_view look_at_holders = R"lua(
local all = redis.pcall('HGETALL', KEYS[1])
local value = all.err and all
if value and not string.find(all.err, 'WRONGTYPE', 1, true) then
  redis.call('HGETALL', KEYS[1])
end
local left = redis.call('PTTL', KEYS[1])
local holds = {}
for i = 1, #all, 2 do holds[all[i]] = all[i + 1] end
local mode = holds.mode
local function timeout_of(reader, n) return timeouts .. ':' .. reader .. ':rwlock_timeout:' .. n end
local function rest_of(reader)
  local count = tonumber(holds[reader]) or 0
  if count > 1000 then return left end
  local rest = -1
  for n = 1, count do rest = math.max(rest, redis.call('PTTL', timeout_of(reader, n))) end
  return rest
end
local function rest_of_others(one)
  local rest = -1
  for reader in pairs(holds) do
    if reader ~= one and reader ~= 'mode' and string.sub(reader, -6) ~= ':write' then
      local its = rest_of(reader)
      if its < 0 then redis.call('HDEL', KEYS[1], reader) end
      rest = math.max(rest, its)
    end
  end
  return rest
end
)lua";

inline constexpr std::string_view refuse_writer = R"lua(
local ours = mode == 'write' and holds[field]
local refused = left ~= -2 and not ours
if left == -2 and beside ~= '' then
  refused = true
  left = 0
elseif refused and beside ~= '' and mode == 'read' then
  local reader = owner_of(beside)
  refused = rest_of(reader) < 0 or rest_of_others(reader) >= 0
end
)lua";

inline constexpr std::string_view take_exclusive = R"lua(
if not ours then
  local ttl = math.max(left, ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ttl)
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'mode', 'write', field, 1)
  redis.call('PEXPIRE', KEYS[1], ttl)
end
)lua";

inline constexpr std::string_view reader = R"lua(
local field = owner_of(ARGV[1])
local timeout = timeout_of(field, 1)
local ours = rest_of(field) >= 0
)lua";

inline constexpr std::string_view refuse_reader = R"lua(
local refused = left ~= -2 and mode ~= 'read'
if beside ~= '' then
  refused = not (mode == 'write' and holds[owner_of(beside) .. ':write'])
  left = math.max(left, 0)
end
if ours then refused = false end
)lua";

inline constexpr std::string_view take_shared = R"lua(
if not ours then
  redis.call('SET', timeout, 1, 'PX', ARGV[2])
  redis.call('PEXPIRE', timeout, ARGV[2])
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'mode', mode or 'read', field, 1)
  redis.call('PEXPIRE', KEYS[1], math.max(left, ARGV[2]))
end
)lua";

// Looks at no other reader: with many, that would take the server most of its time.
inline constexpr std::string_view extend_shared = R"lua(
local field = owner_of(ARGV[1])
local timeout = timeouts .. ':' .. field .. ':rwlock_timeout:1'
local value = redis.pcall('HEXISTS', KEYS[1], field)
if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
  redis.call('HEXISTS', KEYS[1], field)
end
local rest = redis.call('PTTL', timeout)
if value ~= 1 or rest < 0 then return 0 end
if rest < tonumber(ARGV[2]) then redis.call('PEXPIRE', timeout, ARGV[2]) end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1
)lua";

inline constexpr std::string_view release_shared = R"lua(
if not holds[field] then return 0 end
redis.call('HDEL', KEYS[1], field)
redis.call('PEXPIRE', timeout, 0)
local rest = rest_of_others(field)
if mode ~= 'read' then return ours and 1 or 0 end
if rest >= 0 then
  redis.call('PEXPIRE', KEYS[1], math.max(rest, 1))
  return ours and 1 or 0
end
redis.call('PEXPIRE', KEYS[1], 0)
)lua";

inline constexpr std::string_view release_exclusive = R"lua(
if mode ~= 'write' or not holds[field] then return 0 end
local rest = rest_of_others(field)
if rest >= 0 then
  redis.call('HDEL', KEYS[1], field)
  redis.call('HSET', KEYS[1], 'mode', 'read')
  redis.call('PEXPIRE', KEYS[1], math.max(rest, 1))
else
  redis.call('PEXPIRE', KEYS[1], 0)
end
)lua";

inline constexpr std::string_view report = R"lua(
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {} end
local owner
local fields = redis.pcall('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] ~= 'mode' then owner = owner and '' or fields[i] end
end
local time = redis.call('TIME')
return {left, owner and owner ~= '' and redis.sha1hex(owner) or '', string.format('%d%06d', time[1], time[2]), '', -1}
)lua";

inline constexpr std::string_view break_lock = R"lua(
if redis.call('PTTL', KEYS[1]) == -2 then return 0 end
local has_mode = redis.pcall('HEXISTS', KEYS[1], 'mode')
if type(has_mode) == 'table' and not string.find(has_mode.err, 'WRONGTYPE', 1, true) then
  redis.call('HEXISTS', KEYS[1], 'mode')
end
if type(has_mode) == 'table' then return -1 end
redis.call('PEXPIRE', KEYS[1], 0)
local others = string.gsub(ARGV[2], '^redisson_lock__channel', 'redisson_rwlock')
if has_mode == 1 then redis.pcall('PUBLISH', others, '1') end
)lua";

}  // namespace parts

namespace common = scripts::parts;  // of the other layout

// The arguments and answers are those of `scripts`, without the queue. A mutex: KEYS lock [fence].
inline constexpr script acquire{
    joined<parts::owner_of, parts::owner, parts::look, common::refuse, parts::take, common::answer_yes>,
    "cd40b9c55e21fee4ae7646db120aaffacabe1aa3"};
inline constexpr script acquire_by_clock{
    joined<parts::owner_of, parts::owner, parts::look, common::refuse, common::look_at_fence, parts::may_read_fence,
           common::next_by_clock, parts::keep_fence, parts::take, common::answer_fence>,
    "f8884128edee036555cae4e86a487eef55632398"};
inline constexpr script extend{joined<parts::owner_of, parts::owner, parts::extend>,
                               "e8192e29b1b43e80fa11d97db0552416e2bfdaf4"};
inline constexpr script release{joined<parts::owner_of, parts::owner, parts::release, parts::wake_one, parts::tell>,
                                "16874288e1384d15329bd5f4b8883789da160435"};

// A read-write lock: KEYS lock [fence] timeouts, what the names of the readers' keys begin with. `waits` has no effect:
// there is no place to remember who waits.
inline constexpr script acquire_exclusive{
    joined<parts::owner_of, parts::writer, parts::timeouts, common::beside, parts::look_at_holders,
           parts::refuse_writer, common::refuse, parts::take_exclusive, common::answer_yes>,
    "23ee8cc4d8145f2e50c702d9576dfd04d0fdf856"};
inline constexpr script acquire_exclusive_by_clock{
    joined<parts::owner_of, parts::writer, parts::timeouts_after_fence, common::beside_by_clock, parts::look_at_holders,
           parts::refuse_writer, common::refuse, common::look_at_fence, parts::may_read_fence, common::next_by_clock,
           parts::keep_fence, parts::take_exclusive, common::answer_fence>,
    "9549884c9660765608bb6fcbb9224ecc9b4c2896"};
inline constexpr script extend_exclusive{joined<parts::owner_of, parts::writer, parts::extend>,
                                         "b859507810d7bc588bd35b03d20c55b5a2fe8423"};
inline constexpr script release_exclusive{
    joined<parts::owner_of, parts::writer, parts::timeouts, parts::look_at_holders, parts::release_exclusive,
           parts::wake_all, parts::tell>,
    "01d46168794065573559270da69f265cae6418a2"};
inline constexpr script acquire_shared{
    joined<parts::owner_of, parts::timeouts, common::beside, parts::look_at_holders, parts::reader,
           parts::refuse_reader, common::refuse, parts::take_shared, common::answer_yes>,
    "3bad8421be658ec0997db393b485d6bd8f8e21f8"};
inline constexpr script acquire_shared_by_clock{
    joined<parts::owner_of, parts::timeouts_after_fence, common::beside_by_clock, parts::look_at_holders, parts::reader,
           parts::refuse_reader, common::refuse, common::look_at_fence, parts::may_read_fence, common::next_by_clock,
           parts::keep_fence, parts::take_shared, common::answer_fence>,
    "0d48d3ed4f861c6bc03e09b015d6a7eab1c7abae"};
inline constexpr script extend_shared{joined<parts::owner_of, parts::timeouts, parts::extend_shared>,
                                      "72bf0c58e695f621b66c633d916ea22a0ac6f37a"};
inline constexpr script release_shared{joined<parts::owner_of, parts::timeouts, parts::look_at_holders, parts::reader,
                                              parts::release_shared, parts::wake_one, parts::tell>,
                                       "23bc03d8887af275c28f4011690c9400b1ae5129"};

// Of operators. What is forced is told to the waiters of both kinds of lock.
inline constexpr script inspect{joined<parts::report>, "16b6967d86adb09e2b78037c1e9c4ab9e56cca3b"};
inline constexpr script force_release{joined<parts::break_lock, parts::wake_one, parts::tell>,
                                      "da92ce08674f9aaf95dabd366c827baf6357ee80"};

}  // namespace holdfast::redis::scripts::redisson
