#!/bin/sh
# Tells $FLOOD things at once, until the last of them is acknowledged.
. "$LIB/common.sh"
hello
if [ ! -e "$NOTES/floods.done" ]; then
	awk -v n="$FLOOD" 'BEGIN { for (i = 0; i < n; i++) printf "{\"event\":{\"id\":\"%d\",\"type\":\"flood\",\"text\":\"%0200d\"}}\n", i, i }'
fi
while IFS= read -r line; do
	case $line in
	'{"ack"'*'"'$((FLOOD - 1))'"'*) : >"$NOTES/floods.done" ;;
	'{"ping"'*) echo '{"pong":{}}' ;;
	'{"stop"'*) exit 0 ;;
	esac
done
