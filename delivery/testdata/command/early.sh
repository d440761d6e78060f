# Ends before it has read anything.
exec <&-
echo "$TOKEN is no good" >&2
exit 3
