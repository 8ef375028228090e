// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// acquire_all: for each lock KEYS lock fence queue next [holder]; ARGV fence-lifetime bound text, then for each lock
// token ttl batch. Takes all of them or none. Answers their fences, 0 for one whose batch is 0; or {-number, PTTL} of
// the first, counted from 1, that cannot be taken just now. Then nothing was written.
// - One that is in use by others waits as by acquire. So a lock with a queue or a reservation counts as held: those who
//   wait come first. So does one whose fence is foreign: an acquire replaces that.
// - All is read before the first write. The fences are written before the locks. If PEXPIRE is not permitted, the first
//   lock is taken back; what else fails in the middle leaves locks that the client releases.
// - The fence and the record are those of acquire_by_clock and acquire_by_clock_and_tell.
inline constexpr std::string_view set_all = R"lua(
local each = ARGV[3] == '' and 4 or 5
local count = #KEYS / each
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local fences, known = {}, {}
for i = 1, count do
  local key = (i - 1) * each
  local value = redis.pcall('GETRANGE', KEYS[key + 1], '0', '32')
  local left = redis.call('PTTL', KEYS[key + 1])
  if left ~= -2 or type(value) == 'table' then return {-i, left} end
  if redis.call('PTTL', KEYS[key + 3]) ~= -2 then return {-i, 0} end
  local reservation = redis.call('PTTL', KEYS[key + 4])
  if reservation >= 0 and reservation <= 1000 then return {-i, reservation} end
  local batch = tonumber(ARGV[3 * i + 3])
  fences[i] = 0
  if batch > 0 then
    local kept = redis.pcall('GETRANGE', KEYS[key + 2], '0', '32')
    local last = type(kept) == 'string' and #kept <= 16 and string.find(kept, '^%d+$') and tonumber(kept)
    if kept == '' and redis.call('PTTL', KEYS[key + 2]) == -2 then last = 0 end
    if not last or last > clock + ARGV[2] + 1000000 then return {-i, 0} end
    last = known[KEYS[key + 2]] or last
    fences[i] = math.max(last + 1, clock) + batch - 1
    known[KEYS[key + 2]] = fences[i]
  end
end
for i = 1, count do
  if fences[i] > 0 then
    local lifetime = ARGV[1] + math.max(0, fences[i] - clock) / 1000
    redis.call('SET', KEYS[(i - 1) * each + 2], string.format('%.0f', fences[i]), 'PX', string.format('%.0f', lifetime))
  end
end
for i = 1, count do
  local key = (i - 1) * each
  local token, ttl = ARGV[3 * i + 1], ARGV[3 * i + 2]
  redis.call('SET', KEYS[key + 1], token, 'PX', ttl)
  local kept = i == 1 and redis.pcall('PEXPIRE', KEYS[1], ttl)
  if type(kept) == 'table' then
)lua";
inline constexpr std::string_view record_all = R"lua(
  end
  if each == 5 then
    local first = fences[i] > 0 and fences[i] - ARGV[3 * i + 3] + 1 or 0
    local record = string.format('%s %d%06d %.0f ', token, time[1], time[2], first) .. ARGV[3]
    redis.pcall('SET', KEYS[key + 5], record, 'PX', ttl)
  end
end
return fences
)lua";
inline constexpr script acquire_all{joined<set_all, parts::take_back, record_all>,
                                    "ff4514471f07598506e0cd2e986d0bdb0d38e667"};

}  // namespace holdfast::redis::scripts
