-- Looks for an answer that replicas share.
--
-- KEYS[1]: the epoch of the mount: a time, another one after each change. KEYS[2]: the answer, with the epoch in which its
-- call began. KEYS[3]: the mark of a call that runs at a replica.
-- ARGV: the replica, and the time in milliseconds after which its mark ends.
-- Gives {"found", ANSWER, MILLISECONDS}, {"lead", EPOCH} to the replica that makes the call, or {"wait"} to the others.
local epoch = redis.call('GET', KEYS[1])
if not epoch then
  local time = redis.call('TIME')
  epoch = string.format('%.0f', time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[1], epoch)
end
redis.call('EXPIRE', KEYS[1], 172800)
local kept = redis.call('GET', KEYS[2])
if kept and string.sub(kept, 1, #epoch + 1) == epoch .. ':' then
  return { 'found', string.sub(kept, #epoch + 2), tostring(redis.call('PTTL', KEYS[2])) }
end
if redis.call('SET', KEYS[3], ARGV[1], 'NX', 'PX', ARGV[2]) then return { 'lead', epoch } end
return { 'wait' }
