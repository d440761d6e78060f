# Takes what it gets, and shows it.
cat >"$OUT/envelope"
env >"$OUT/env"
echo "$@" >"$OUT/args"
