#!/bin/sh
# cross.sh: build the program for each of PLATFORMS (os/arch), and vet every
# package there: a file for another system is compiled nowhere else.
set -eu

export CGO_ENABLED=0 GOARM=7 # 7 is every 32-bit board still sold
mkdir -p dist
for platform in $PLATFORMS; do
	export GOOS="${platform%/*}" GOARCH="${platform#*/}"
	case $GOOS in windows) suffix=.exe ;; *) suffix= ;; esac
	echo "$platform"
	go build -trimpath -ldflags '-s -w' -o "dist/leasehold-$GOOS-$GOARCH$suffix" .
	go vet ./...
done
