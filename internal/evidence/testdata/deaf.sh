#!/bin/sh
# Hears neither its input nor any signal that one can ignore.
trap '' TERM INT HUP
. "$LIB/common.sh"
hello
event deaf
while :; do sleep 1000; done
