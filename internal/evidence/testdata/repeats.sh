#!/bin/sh
# A platform that repeats what was not acknowledged: 500 things, and a note of each
# acknowledgement.
. "$LIB/common.sh"
hello
acked=0
[ -s "$NOTES/acked" ] && acked=$(tail -n 1 "$NOTES/acked")
(
	i=$((acked + 1))
	while [ $i -le 500 ]; do
		event "$i"
		i=$((i + 1))
		[ $((i % 20)) -gt 0 ] || sleep 0.1
	done
) &
while IFS= read -r line; do
	case $line in
	'{"ack"'*)
		line=${line#*\"id\":\"}
		echo "${line%%\"*}" >>"$NOTES/acked"
		;;
	'{"ping"'*) echo '{"pong":{}}' ;;
	'{"stop"'*) exit 0 ;;
	esac
done
