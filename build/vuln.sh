#!/bin/sh
# vuln.sh: scan the program for known vulnerabilities. The database is a module
# like any other, at the version in build/tools/go.mod, so the scan needs no
# network beyond the module proxy and finds the same today and tomorrow.
set -eu

tools=-modfile=build/tools/go.mod
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go mod download $tools golang.org/x/vulndb
go build $tools -o "$work/" golang.org/x/vuln/cmd/govulncheck golang.org/x/vulndb/cmd/indexdb
go build -o "$work/" ./build/vulngate
entries=$(go list $tools -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv
"$work/indexdb" -vulns "$entries" -out "$work/db"

for os in linux windows darwin; do
	GOOS=$os CGO_ENABLED=0 "$work/govulncheck" -db "file://$work/db" -format json ./... >>"$work/scans"
done
"$work/vulngate" <"$work/scans"
