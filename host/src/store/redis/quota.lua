-- Takes from the quotas of one principal, from all of them or from none. Each key is a leaky bucket: `u` units are used
-- at the time `t`, in microseconds of this server's clock.
--
-- KEYS: one for each quota.
-- ARGV[1]: "take" to check the quotas, "charge" to take in any case.
-- ARGV, five for each key: units that come back in a period, the period in microseconds, units at once, units that were
-- taken before and are not counted yet (negative: given back), units to take.
-- Gives {0, LEASE, ...}: taken, and as many units more are taken for each key, for the next requests of this caller.
-- Gives {WAIT, INDEX}: nothing was taken; the key INDEX has to wait for WAIT microseconds.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local buckets = {}
local longest, index = 0, 0
for i, key in ipairs(KEYS) do
  local a = 5 * i - 3
  local b = { amount = tonumber(ARGV[a]), period = tonumber(ARGV[a + 1]), burst = tonumber(ARGV[a + 2]),
              owed = tonumber(ARGV[a + 3]), cost = tonumber(ARGV[a + 4]) }
  local kept = redis.call('HMGET', key, 'u', 't')
  local used, at = tonumber(kept[1]) or 0, tonumber(kept[2]) or now
  if now > at then used = used - (now - at) * b.amount / b.period end
  b.used = math.max(0, math.max(0, used) + b.owed)
  buckets[i] = b
  if ARGV[1] == 'take' then
    local missing = b.used + math.max(b.cost, 1) - b.burst
    -- A billionth of a unit is an error of the arithmetic.
    if missing > 1e-9 then
      local wait = math.ceil(missing * b.period / b.amount)
      if wait > longest then longest, index = wait, i end
    end
  end
end
local reply = { longest }
for i, key in ipairs(KEYS) do
  local b = buckets[i]
  if longest == 0 then
    local left = b.burst - b.used - b.cost
    local lease = 0
    -- Near its end a quota is exact: nothing is set aside.
    if ARGV[1] == 'take' and left >= 256 then lease = math.floor(left / 64) end
    b.used = b.used + b.cost + lease
    reply[i + 1] = lease
  end
  if longest == 0 or b.owed ~= 0 then
    redis.call('HSET', key, 'u', string.format('%.17g', b.used), 't', string.format('%.0f', now))
    redis.call('PEXPIRE', key, math.ceil(b.used * b.period / b.amount / 1000) + 1000)
  end
end
if longest > 0 then return { longest, index } end
return reply
