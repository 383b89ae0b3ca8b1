-- Says that this replica lives, and with which configuration. Gives what is known of all that live.
--
-- KEYS[1]: the replicas, each with the time of its last beat. KEYS[2]: what each said. KEYS[3]: the generations, each with
-- the time of its last beat. KEYS[4]: the order of the generations. KEYS[5]: the last order. KEYS[6]: the time of the last
-- change of what is said.
-- ARGV: the replica, what it says, its generation, the time in milliseconds after which a silent replica counts as gone,
-- the time after which a generation that nobody has counts as new when it comes back, "changed" if this replica had
-- another generation before: then this one is the newest, also if it existed before; and the last change that it knows.
-- Gives {GENERATION, ORDER, ..., "", CHANGE, WHAT, ...}. What all say is left out if this replica knows that change: a beat
-- then costs the same with many replicas as with few.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))
for _, replica in ipairs(gone) do
  redis.call('ZREM', KEYS[1], replica)
  redis.call('HDEL', KEYS[2], replica)
end
local said = redis.call('HGET', KEYS[2], ARGV[1])
local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[5]))
for _, generation in ipairs(old) do
  redis.call('ZREM', KEYS[3], generation)
  redis.call('HDEL', KEYS[4], generation)
end
if ARGV[6] == 'changed' or not redis.call('HGET', KEYS[4], ARGV[3]) then
  redis.call('HSET', KEYS[4], ARGV[3], redis.call('INCR', KEYS[5]))
end
redis.call('ZADD', KEYS[3], now, ARGV[3])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local change = redis.call('GET', KEYS[6])
if not change or #gone > 0 or said ~= ARGV[2] then
  -- Another number than before, also within one microsecond.
  change = string.format('%.0f', math.max(time[1] * 1000000 + time[2], (tonumber(change) or 0) + 1))
  redis.call('SET', KEYS[6], change)
end
for i = 1, 6 do redis.call('EXPIRE', KEYS[i], 86400) end
local reply = redis.call('HGETALL', KEYS[4])
reply[#reply + 1] = ''
reply[#reply + 1] = change
if change == ARGV[7] then return reply end
for _, what in ipairs(redis.call('HVALS', KEYS[2])) do reply[#reply + 1] = what end
return reply
