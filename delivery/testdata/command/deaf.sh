# Reads nothing of its input, and takes its time.
sleep 0.3
