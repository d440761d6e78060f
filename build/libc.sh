#!/bin/sh
# libc.sh: SQLite is C translated to Go, against one version of modernc.org/libc.
# Any other version compiles, too, and then crashes in production.
set -eu

go mod download modernc.org/sqlite
have=$(go list -m -f '{{.Version}}' modernc.org/libc)
want=$(go mod edit -json "$(go list -m -f '{{.GoMod}}' modernc.org/sqlite)" | awk -F '"' '
	$2 == "Path" { path = $4 }
	$2 == "Version" && path == "modernc.org/libc" { print $4; exit }')
[ -n "$want" ] || { echo 'modernc.org/sqlite names no modernc.org/libc' >&2; exit 1; }
if [ "$have" != "$want" ]; then
	echo "modernc.org/libc is $have, and modernc.org/sqlite was made for $want; run: go get modernc.org/libc@$want" >&2
	exit 1
fi
echo "modernc.org/libc $have"
