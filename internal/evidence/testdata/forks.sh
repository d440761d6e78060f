#!/bin/sh
# Has offspring: one that ignores signals, one that has left its session.
. "$LIB/common.sh"
(trap '' TERM INT HUP; exec sleep 100000) &
setsid sleep 100000 &
hello
event forks
serve
