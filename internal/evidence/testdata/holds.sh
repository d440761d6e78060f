#!/bin/sh
# Dies, and what it has started holds its output open.
. "$LIB/common.sh"
hello
event before
sleep 100000 &
exit 3
