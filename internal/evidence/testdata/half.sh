#!/bin/sh
# Dies within a line.
. "$LIB/common.sh"
hello
event whole
printf '{"event":{"id":"half","text":"this line has no end"}}'
exit 0
