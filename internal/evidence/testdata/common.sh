# What the programs of the test share. Each run of one is noted in $NOTES/NAME.runs.
echo "$$" >>"$NOTES/$NAME.runs"

hello() {
	echo '{"hello":{"protocol":1,"name":"'"$NAME"'"}}'
	echo '{"ready":{}}'
}

event() {
	echo '{"event":{"id":"'"$1"'","type":"told","text":"'"$1"'"}}'
}

# Answers pings until it is told to stop.
serve() {
	while IFS= read -r line; do
		case $line in
		'{"ping"'*) echo '{"pong":{}}' ;;
		'{"stop"'*) return 0 ;;
		esac
	done
}
