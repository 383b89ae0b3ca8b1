-- Spends a number. ARGV: the replica, and the time in milliseconds for which the mark is kept.
-- Gives 1 if it was not spent, also if this replica spent it and did not hear the answer. Gives 0 otherwise.
local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return holder == ARGV[1] and 1 or 0
