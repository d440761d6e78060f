# Ends well, and leaves a process that holds its output.
sleep 1000 &
echo $! >"$OUT/pid"
