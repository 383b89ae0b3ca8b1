#!/bin/sh
# Starts Valkey or Redis in memory, with one user: "belljar", with the password in the file $1 and no rights of an administrator.
# compose.yaml uses this script too.
set -eu
server=$(command -v valkey-server || command -v redis-server)
# The file of users has the hash of the password. The end of the line is no part of the password.
hash=$(printf %s "$(cat "$1")" | sha256sum | cut -d ' ' -f 1)
printf '%s\n' 'user default off' "user belljar on #$hash ~belljar:* &belljar:* +@all -@admin -@dangerous" > /run/redis/users.acl
exec "$server" --aclfile /run/redis/users.acl --dir /run/redis --save "" --appendonly no \
    --maxmemory "${2:-64mb}" --maxmemory-policy noeviction
