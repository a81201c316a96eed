#!/bin/sh
# Stops a server of the lab and removes its state directory.
#
#   flock --exclusive DIR/users.lock env --unset=WEIR_LAB sh -c '…' keeper.sh DIR
#
# flock(1) waits until the last user has gone and keeps the lock while this runs, so a new user waits until
# the old server is away. Processes are found by the mark in their environment, see marks.rs; this script
# runs without it, or it would find its own subshells.
set -u

directory=$1
mark="WEIR_LAB=$directory"

# The ids of all marked processes but the flock that runs this.
remaining() {
  grep --null-data --line-regexp --fixed-strings --files-with-matches -e "$mark" \
    /proc/[0-9]*/environ 2>/dev/null |
    while IFS=/ read -r _ _ pid _; do
      if [ "$pid" != "$PPID" ]; then echo "$pid"; fi
    done
}

# Sends this signal until none is left at two glances running; fails after five seconds. One glance would not
# do: a process that a user started just before it was killed shows its mark only when it has been executed.
# The API server, asked twice, does not wait for its clients.
end() {
  glances=0
  empty=0
  while [ "$empty" -lt 2 ]; do
    if [ "$glances" -ge 50 ]; then return 1; fi
    glances=$((glances + 1))
    empty=$((empty + 1))
    for pid in $(remaining); do
      empty=0
      kill -s "$1" "$pid" 2>/dev/null
    done
    sleep 0.1
  done
}

end TERM || end KILL

# Renamed first: from then on a new user makes a directory of its own.
gone="$directory.gone.$$"
if [ -d "$directory" ]; then mv "$directory" "$gone" && rm -rf "$gone"; fi
