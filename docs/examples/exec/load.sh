#!/bin/sh
# The load of this machine as an event, every $EVERY seconds: the smallest program
# that keeps to the protocol of docs/exec.md, which it does without reading JSON.
#
#   [[installation]]
#   id = "load"
#   type = "exec"
#   [installation.config]
#   command = ["/path/to/load.sh"]
#   env = { EVERY = "60" }
set -eu

echo '{"hello":{"protocol":1,"name":"load.sh","version":"1"}}'
echo '{"ready":{}}'

# What the background writes and what the foreground writes come whole: a line this
# short is one write, and of writes below 4,096 bytes into a pipe none is torn.
while :; do
	load=$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || uptime | sed 's/.*load averages*: *//')
	printf '{"event":{"id":"%s","type":"device","conversation":{"id":"load"},"text":"load %s"}}\n' "$(date +%s)" "$load"
	sleep "${EVERY:-60}"
done &

# Without an answer to ping it would be taken for dead. After stop, what runs in the
# background is ended by Leasehold.
while IFS= read -r line; do
	case $line in
	'{"ping"'*) echo '{"pong":{}}' ;;
	'{"stop"'*) exit 0 ;;
	esac
done
