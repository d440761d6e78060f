# Ignores the request to end, and so does its child.
trap '' TERM
sh -c 'trap "" TERM; while :; do sleep 1000; done' &
echo $! >"$OUT/pid.tmp"
mv "$OUT/pid.tmp" "$OUT/pid"
while :; do sleep 1000; done
