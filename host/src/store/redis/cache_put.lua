-- Ends a call that was made for all replicas, and keeps its answer if nothing changed since it began.
--
-- KEYS: as for the look-up. ARGV: the replica, the epoch in which the call began, the time in milliseconds to keep the answer
-- (0: not at all), and the answer.
if tonumber(ARGV[3]) > 0 and redis.call('GET', KEYS[1]) == ARGV[2] then
  redis.call('SET', KEYS[2], ARGV[2] .. ':' .. ARGV[4], 'PX', ARGV[3])
end
if redis.call('GET', KEYS[3]) == ARGV[1] then redis.call('DEL', KEYS[3]) end
return 1
