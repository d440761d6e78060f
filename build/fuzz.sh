#!/bin/sh
# fuzz.sh: run each fuzz test for FUZZTIME, one after the other: go test fuzzes
# one at a time.
set -eu

export CGO_ENABLED=0
found=0
for package in $(go list ./...); do
	tests=$(go test -list '^Fuzz' "$package")
	for name in $(echo "$tests" | grep '^Fuzz' || true); do
		found=1
		echo "$package $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$FUZZTIME" "$package"
	done
done
[ $found = 1 ] || { echo 'no fuzz test found' >&2; exit 1; }
