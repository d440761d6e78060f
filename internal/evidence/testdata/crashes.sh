#!/bin/sh
# Tells three things and dies, each time.
. "$LIB/common.sh"
hello
event a
event b
event c
exit 1
