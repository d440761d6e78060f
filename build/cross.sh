#!/bin/sh
# cross.sh: build the program for each of PLATFORMS (os/arch), and vet every
# package there, tests included: a file for another system is compiled nowhere
# else. One that fails does not keep the others from being tried.
set -eu

export CGO_ENABLED=0 GOARM=7 # 7 is every 32-bit board still sold
mkdir -p dist
failed=
for platform in $PLATFORMS; do
	export GOOS="${platform%/*}" GOARCH="${platform#*/}"
	case $GOOS in windows) suffix=.exe ;; *) suffix= ;; esac
	echo "$platform"
	# The same flag for both: what is compiled for one serves the other.
	{
		go build -trimpath -ldflags '-s -w' -o "dist/leasehold-$GOOS-$GOARCH$suffix" . &&
			go vet -trimpath ./...
	} || failed="$failed $platform"
done
if [ -n "$failed" ]; then
	echo "failed:$failed" >&2
	exit 1
fi
