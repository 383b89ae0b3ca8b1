-- Begins a new epoch of a mount: no answer from before is valid.
local time = redis.call('TIME')
redis.call('SET', KEYS[1], string.format('%.0f', time[1] * 1000000 + time[2]), 'EX', 172800)
return 1
