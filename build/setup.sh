#!/bin/sh
# setup.sh test|race: get this machine ready for the target of that name.
#
# Go itself is a person's to install. What else is missing is installed when we
# are root and there is apt-get, and named otherwise: the suite runs without it
# and says what it skipped, the race detector does not.
set -eu

if ! command -v go >/dev/null; then
	echo 'go is missing; install it from https://go.dev/dl' >&2
	exit 1
fi
want=$(sed -n 's/^go //p' go.mod)
have=$(go env GOVERSION | sed 's/^go//; s/[^0-9.].*//')
oldest=$(printf '%s\n%s\n' "$want" "$have" | sort -t. -k1,1n -k2,2n -k3,3n | head -n 1)
if [ "$oldest" != "$want" ]; then
	echo "go $have is older than the $want that go.mod asks for; update it from https://go.dev/dl" >&2
	exit 1
fi

# Each line is a program and the Debian package that it comes in.
case "$1" in
test) needs='unshare util-linux
mount mount
python3 python3
node nodejs
perl perl
mosquitto mosquitto
/usr/lib/postgresql/*/bin/initdb postgresql' ;;
race) needs='gcc gcc
/usr/include/stdlib.h libc6-dev' ;;
*)
	echo "usage: setup.sh test|race" >&2
	exit 2
	;;
esac
[ "$(uname)" = Linux ] || exit 0 # elsewhere the tests that need these do not exist, and gcc is clang

missing=$(echo "$needs" | while read -r program package; do
	# shellcheck disable=SC2086 # a path may hold a pattern
	command -v "$program" >/dev/null || ls $program >/dev/null 2>&1 || echo "$package"
done)
[ -n "$missing" ] || exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
	echo "installing" $missing
	# shellcheck disable=SC2086 # one argument a package
	apt-get update -qq &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null &&
		exit 0
fi
echo "not installed here:" $missing >&2
[ "$1" = test ] || { echo 'install them and try again' >&2; exit 1; }
