#!/bin/sh
# Tells a hundred thousand things at once, until the last of them is acknowledged.
. "$LIB/common.sh"
hello
if [ ! -e "$NOTES/floods.done" ]; then
	awk 'BEGIN { for (i = 0; i < 100000; i++) printf "{\"event\":{\"id\":\"%d\",\"type\":\"flood\",\"text\":\"%0200d\"}}\n", i, i }'
fi
while IFS= read -r line; do
	case $line in
	'{"ack"'*'"99999"'*) : >"$NOTES/floods.done" ;;
	'{"ping"'*) echo '{"pong":{}}' ;;
	'{"stop"'*) exit 0 ;;
	esac
done
