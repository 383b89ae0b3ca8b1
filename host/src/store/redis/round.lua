-- Begins a round of one mount: says what this replica watches, and asks for the lease of the mount.
--
-- KEYS[1]: what is watched, each with the time until which that is remembered. KEYS[2]: the lease.
-- ARGV: the replica, the time of the lease in milliseconds, the time to remember in milliseconds, the most names to give,
-- and names that this replica watches, if they are to be remembered anew.
-- Gives {FENCE, NAME, ...} to the holder of the lease: a number that grows with each new holder, and what all replicas
-- watch. Gives {"0"} to the others.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
local keep = tonumber(ARGV[3])
for i = 5, #ARGV do
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + keep * 1000), ARGV[i])
end
if #ARGV >= 5 then redis.call('PEXPIRE', KEYS[1], keep) end
local lease = redis.call('GET', KEYS[2])
local fence
if lease then
  local holder, number = string.match(lease, '^(%x+):(%d+)$')
  if holder and holder ~= ARGV[1] then return { '0' } end
  fence = number
end
fence = fence or string.format('%.0f', now)
redis.call('SET', KEYS[2], ARGV[1] .. ':' .. fence, 'PX', ARGV[2])
local reply = { fence }
if tonumber(ARGV[4]) > 0 then
  for i, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, tonumber(ARGV[4]) - 1)) do reply[i + 1] = name end
end
return reply
