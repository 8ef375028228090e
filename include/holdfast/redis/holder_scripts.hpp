// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// With a record of the holder, which is the last key: a string, "<owner token><mark><since> <fence> <text>". The mark
// is a blank, or '!' if the holder is asked to release the lock. `since` is the server's clock in µs; the fence is the
// first of the lease, 0 if that is not known. The record is about the lease whose owner token it has, and no other.
// - acquire and reacquire: the last argument is the text.
// - extend and reacquire answer 2 if the holder is asked to release the lock.
// - Each call about the record is a pcall, or comes after what it must not keep from happening.

namespace parts {

inline constexpr std::string_view take_holder = "local holder = table.remove(KEYS)\n";
inline constexpr std::string_view take_text = "local text = table.remove(ARGV)\n";
inline constexpr std::string_view look_at_clock = "local time = redis.call('TIME')\nlocal fence\n";

inline constexpr std::string_view record = R"lua(
local first = fence and fence - ARGV[3] + 1 or 0
redis.pcall('SET', holder, string.format('%s %d%06d %.0f ', ARGV[1], time[1], time[2], first) .. text, 'PX', ARGV[2])
)lua";

inline constexpr std::string_view erase_record = "if ours then redis.pcall('PEXPIRE', holder, 0) end\n";

inline constexpr std::string_view compare_delete_and_erase = R"lua(
local ours = redis.pcall('GETRANGE', KEYS[1], '0', '32') == ARGV[1]
if not ours then return 0 end
redis.call('PEXPIRE', KEYS[1], 0)
)lua";

inline constexpr std::string_view set_if_free = R"lua(
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local time = redis.call('TIME')
  redis.pcall('SET', holder, string.format('%s %d%06d 0 ', ARGV[1], time[1], time[2]) .. text, 'PX', ARGV[2])
  return 1
end
)lua";

inline constexpr std::string_view extend_both = R"lua(
if redis.pcall('GETRANGE', KEYS[1], '0', '32') ~= ARGV[1] then return 0 end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  redis.pcall('PEXPIRE', holder, ARGV[2])
end
return redis.pcall('GETRANGE', holder, 0, 32) == ARGV[1] .. '!' and 2 or 1
)lua";

// Where the record is a key at all, the number of keys is even.
inline constexpr std::string_view take_holder_if_there = R"lua(
local holder = #KEYS % 2 == 0 and table.remove(KEYS)
)lua";

// The records of those who have the lock, at most so many: for each its key, and what it says. That of a reader is its
// own, see `shared_holder_scripts`; of more than 1,000 readers, those whose leases last longest are looked at. Servers
// that have the same readers name them in the same order. The key with the readers is not among KEYS: a user who may
// not read it would be refused as a whole, and so does without.
inline constexpr std::string_view records = R"lua(
local function records(value, most)
  if not holder or type(value) ~= 'string' then return {} end
  local tokens, all = {value}, {}
  if value == 'holdfast:readers' then
    tokens = redis.pcall('ZREVRANGE', 'holdfast:readers:' .. string.sub(holder, 17), 0, 999)
    table.sort(tokens)
  end
  for _, token in ipairs(tokens) do
    if #all == most then break end
    local key = token == value and holder or holder .. ':' .. redis.sha1hex(token)
    local kept = redis.pcall('GETRANGE', key, 0, 8191)
    if type(kept) == 'string' and #token == 32 and string.sub(kept, 1, 32) == token then all[#all + 1] = {key, kept} end
  end
  return all
end
)lua";

inline constexpr std::string_view report = R"lua(
local value = redis.pcall('GETRANGE', KEYS[1], '0', '32')
local left = redis.call('PTTL', KEYS[1])
if left == -2 then return {} end
if type(value) == 'table' then value = '' end
local one = records(value, 1)[1]
local about = one and string.sub(one[2], 33)
local waiting = queue and redis.pcall('ZCARD', queue)
local time = redis.call('TIME')
return {left, redis.sha1hex(value), string.format('%d%06d', time[1], time[2]), about or '',
        type(waiting) == 'number' and waiting or -1}
)lua";

// After `read_value`, which says whether the user may read it.
inline constexpr std::string_view break_lock = R"lua(
if redis.call('PTTL', KEYS[1]) == -2 then return 0 end
if type(value) == 'table' then return -1 end
local all = records(value, 1000)
redis.call('PEXPIRE', KEYS[1], 0)
for _, one in ipairs(all) do redis.pcall('PEXPIRE', one[1], 0) end
)lua";

inline constexpr std::string_view mark_record = R"lua(
if redis.call('PTTL', KEYS[1]) == -2 then return 0 end
local answer = -1
for _, one in ipairs(records(value, 1000)) do
  local left = redis.pcall('PTTL', one[1])
  if type(left) == 'number' and left > 0 then
    redis.call('SET', one[1], string.sub(one[2], 1, 32) .. '!' .. string.sub(one[2], 34), 'PX', left)
    answer = 1
  end
end
return answer
)lua";

}  // namespace parts

inline constexpr auto acquire_and_tell_text =
    joined<parts::take_holder, parts::take_text, parts::keys, parts::waiter, parts::turn, parts::look_at_clock,
           parts::take, parts::record, parts::answer_yes>;
inline constexpr script acquire_and_tell{acquire_and_tell_text, "7cc08088da08c9855702011de6f782428afc0620"};

inline constexpr auto acquire_by_clock_and_tell_text =
    joined<parts::take_holder, parts::take_text, parts::keys_after_fence, parts::waiter_by_clock, parts::turn,
           parts::look_at_fence, parts::fence_by_clock, parts::take, parts::record, parts::answer_fence>;
inline constexpr script acquire_by_clock_and_tell{acquire_by_clock_and_tell_text,
                                                  "463a6004becf8b3b4b5063bbeb52c057e95a2021"};

inline constexpr auto acquire_by_count_and_tell_text =
    joined<parts::take_holder, parts::take_text, parts::keys_after_fence, parts::waiter_by_count, parts::turn,
           parts::look_at_fence, parts::fence_by_count, parts::take, parts::record, parts::answer_fence>;
inline constexpr script acquire_by_count_and_tell{acquire_by_count_and_tell_text,
                                                  "01ea4bd2f1155683d1a9cdef576e9076fcbac9de"};

inline constexpr auto extend_and_hear_text = joined<parts::take_holder, parts::extend_both>;
inline constexpr script extend_and_hear{extend_and_hear_text, "c56d55b3f82f5c30fd8eb0fee4a01ba7f1cb9b98"};

inline constexpr auto reacquire_and_tell_text =
    joined<parts::take_holder, parts::take_text, parts::set_if_free, parts::extend_both>;
inline constexpr script reacquire_and_tell{reacquire_and_tell_text, "158da68f5aa0ee00ae2cf2bd7fa5874a4111a9df"};

inline constexpr script release_and_erase{joined<parts::take_holder, parts::compare_delete_and_erase,
                                                 parts::erase_record, parts::keys, parts::call_next, parts::tell_all>,
                                          "bbc5ffbf335b549b1b1092f0000e7dacf30b9ba4"};

inline constexpr script give_back_and_erase{
    joined<parts::take_holder, parts::keys, parts::waiter, parts::enqueue, parts::call_next, parts::leave_or_stay,
           parts::erase_record, parts::tell_all>,
    "94568e9bb58a37a1527ae12f8eaca8b43ab34c6e"};

// inspect: KEYS lock [queue next] [holder]. Answers {} if the lock is free; otherwise {PTTL, a digest of the value, the
// clock in µs, the record without its owner token, how many wait or -1}. The digest only tells values apart.
inline constexpr script inspect{joined<parts::take_holder_if_there, parts::keys, parts::records, parts::report>,
                                "c94748bf12379f7932b7d6ae25e5761b205b1192"};

// force_release: KEYS lock [queue next] [holder]; ARGV '' channel. Answers 1 + the number of subscribers told; 0: it is
// free; -1: its key is of another type, and stays.
inline constexpr script force_release{joined<parts::take_holder_if_there, parts::records, parts::keys, parts::call_next,
                                             parts::read_value, parts::break_lock, parts::tell_all>,
                                      "c4c05c256e84c1e2b9718fa700033b249c3e0f5a"};

// request_release: KEYS lock [holder]. Answers 1; 0: it is free; -1: there is no record of its holder.
inline constexpr script request_release{
    joined<parts::take_holder_if_there, parts::records, parts::read_value, parts::mark_record>,
    "8ecc3e96ab0c18ffcabd7fbb6cb1a368a532ec1d"};

// list: ARGV cursor pattern count. Answers {cursor, name…}: of the keys that match, those that hold an owner token, or
// have readers, and expire. Looks at about `count` keys. A name of more than 4 KiB is left out: a reply is not to be
// too long.
inline constexpr std::string_view list_text = R"lua(
local got = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])
local all = {got[1]}
for _, key in ipairs(got[2]) do
  if #key <= 4096 and string.sub(key, 1, 9) ~= 'holdfast:' then
    local value = redis.pcall('GETRANGE', key, 0, 32)
    if value == 'holdfast:readers' or (type(value) == 'string' and #value == 32 and not string.find(value, '[^0-9a-f]'))
    then
      local left = redis.pcall('PTTL', key)
      if type(left) == 'number' and left > 0 then all[#all + 1] = key end
    end
  end
end
return all
)lua";
inline constexpr script list{joined<list_text>, "ce454f17e3557423492334c68ef62f5f73a2096a"};

// count: KEYS slot 0; ARGV '' slots. Answers for each slot a digest of its value, which only tells values apart; '' if
// it is free. The names of the other slots differ in the number at their end.
inline constexpr std::string_view count_text = R"lua(
local name = string.sub(KEYS[1], 1, -2)
local all = {}
for i = 1, tonumber(ARGV[2]) do
  local key = name .. (i - 1)
  local value = redis.pcall('GETRANGE', key, 0, 32)
  local left = redis.call('PTTL', key)
  all[i] = left == -2 and '' or string.sub(redis.sha1hex(type(value) == 'string' and value or ''), 1, 16)
end
return all
)lua";
inline constexpr script count{joined<count_text>, "0aa0aaf236d294595eb6217be78be124c0119fe6"};

// resize: KEYS slot 0; ARGV '' permits ttl. The number of permits is kept as `permit_scripts` says, beside the slots.
// One that does not expire is replaced by one that does not. Answers 1; an error if the key is no string.
inline constexpr std::string_view resize_text = R"lua(
local number_key = string.gsub(KEYS[1], '#%d+$', '#max', 1)
redis.call('GETRANGE', number_key, 0, 0)
local rest = redis.call('PTTL', number_key)
if rest == -1 then
  redis.call('SET', number_key, ARGV[2])
else
  redis.call('SET', number_key, ARGV[2], 'PX', string.format('%.0f', math.max(rest, ARGV[3] + 1000)))
end
return 1
)lua";
inline constexpr script resize{joined<resize_text>, "54960330ee985092209cbe926f54c23a6be50016"};

}  // namespace holdfast::redis::scripts
