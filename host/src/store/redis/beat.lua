-- Says that this replica lives, and with which configuration. Gives what is known of all that live.
--
-- KEYS[1]: the replicas, each with the time of its last beat. KEYS[2]: what each said. KEYS[3]: the generations, each with
-- the time of its last beat. KEYS[4]: the order of the generations. KEYS[5]: the last order.
-- ARGV: the replica, what it says, its generation, the time in milliseconds after which a silent replica counts as gone,
-- the time after which a generation that nobody has counts as new when it comes back, and "changed" if this replica had
-- another generation before: then this one is the newest, also if it existed before.
-- Gives {GENERATION, ORDER, ..., "", WHAT, ...}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[4]))
for _, replica in ipairs(gone) do
  redis.call('ZREM', KEYS[1], replica)
  redis.call('HDEL', KEYS[2], replica)
end
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
for i = 1, 5 do redis.call('EXPIRE', KEYS[i], 86400) end
local reply = redis.call('HGETALL', KEYS[4])
reply[#reply + 1] = ''
for _, what in ipairs(redis.call('HVALS', KEYS[2])) do reply[#reply + 1] = what end
return reply
