#!/bin/sh
# Runs every fuzz target of one test binary for a short while; go test -exec calls it as
# "short.sh BINARY FLAGS..." in the package's folder. FUZZCOUNT is how many inputs each
# target tries. A count and no time: the number of inputs is the same on a slow machine, and a
# deadline is no failure.
set -eu

binary=$1
shift
targets=$("$binary" -test.list '^Fuzz')
if [ -z "$targets" ]; then
  echo "no fuzz target in $binary: go test -exec is to be given packages that have one" >&2
  exit 1
fi
found=$(mktemp -d) # new inputs that pass are not kept: a long run is for that
trap 'rm -rf "$found"' EXIT
for target in $targets; do
  # "$@" is what go test passes on: the last of a flag given twice counts.
  if ! said=$("$binary" "$@" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "${FUZZCOUNT:-1000}x" \
    -test.fuzzminimizetime 5x -test.fuzzcachedir "$found" -test.parallel 1 2>&1); then
    printf '%s\n' "$said"
    echo "$target fails; the input stays in testdata/fuzz/$target and is replayed by: cd $PWD && go test -run '^$target\$' ."
    exit 1
  fi
  printf '%s: %s\n' "$target" "$(printf '%s\n' "$said" | grep 'execs: ' | tail -n 1 | sed 's/.*execs: \([0-9]*\).*/\1 inputs/')"
done
