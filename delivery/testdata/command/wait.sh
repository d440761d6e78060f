# Waits for a child that waits.
sleep 1000 &
echo $! >"$OUT/pid.tmp"
mv "$OUT/pid.tmp" "$OUT/pid"
echo "waiting for the other program" >&2
wait
