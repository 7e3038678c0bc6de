#!/usr/bin/env bash
# Builds the images twice, from the checkout and from a copy of it in another folder,
# and fails unless every byte is the same. Arguments are those of the image command,
# such as --platform. COLD=1 gives the second build an empty build cache, so that
# everything is compiled twice; it takes minutes and 2 GB.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
mkdir -p "$work/another/folder" "$work/tmp"

build() { # FOLDER OUTPUT ARGUMENTS...
  local folder=$1 output=$2
  shift 2
  (cd "$folder/deploy/image" && go run . --version v0.0.0-check --output "$output" "$@")
}

echo "first build"
build "$PWD" "$work/first" "$@" | tee "$work/digests"
git ls-files -z --cached --others --exclude-standard --deduplicate |
  while IFS= read -r -d '' file; do
    [ ! -f "$file" ] || printf '%s\0' "$file" # a file that is deleted and not committed
  done | tar --null --files-from=- --create | tar --extract --directory="$work/another/folder" --touch
echo "second build"
if [ -n "${COLD:-}" ]; then export GOCACHE=$work/cache; fi
TMPDIR=$work/tmp build "$work/another/folder" "$work/second" "$@" | diff "$work/digests" -
diff --recursive "$work/first" "$work/second"
echo "both builds are the same, byte for byte"
(cd deploy/image && QUAYMASTER_IMAGES=$work/first go test -count=1 -run '^TestBuilt$' ./compose)
