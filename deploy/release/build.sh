#!/usr/bin/env bash
# Builds all that a release has, into an empty folder:
#
#   deploy/release/build.sh v1.2.3 dist
#
#   dist/programs/     quaymaster and quaymaster-node for each platform
#   dist/files/        their archives, the charts, SHA256SUMS and the bills of materials
#   dist/images/       the images, as OCI layouts
#   dist/quaymaster.yaml, dist/quaymaster.rb   for Krew and Homebrew
#
# Nothing is signed or sent. HELM is the helm program. PROGRAMS is a folder of programs
# to use in place of building them. Equal commits and one release of Go give equal files,
# except for the charts, whose packages have times in them.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=$1 dist=$2
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "build.sh: '$version': want a release such as v1.2.3" >&2; exit 2; }
mkdir -p "$dist"
dist=$(cd "$dist" && pwd)
[ -z "$(ls -A "$dist")" ] || { echo "build.sh: $dist is not empty" >&2; exit 2; }
platforms=${PLATFORMS:-linux/amd64,linux/arm64} # of the images
revision=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

image() { (cd deploy/image && go run . --version "$version" "$@"); }

mkdir -p "$dist/programs" "$dist/files"
echo "programs"
if [ -n "${PROGRAMS:-}" ]; then
  cp "$PROGRAMS"/* "$dist/programs/"
else
  image --compile "$dist/programs" --program quaymaster --platform linux/amd64,linux/arm64,darwin/amd64,darwin/arm64
  image --compile "$dist/programs" --program quaymaster-node --platform "$platforms"
fi

echo "archives"
for file in "$dist"/programs/*; do
  name=$(basename "$file")
  program=${name%%_*}
  folder=$(mktemp -d)
  install -m 0755 "$file" "$folder/$program"
  install -m 0644 LICENSE "$folder/LICENSE"
  tar --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$folder" -cf - LICENSE "$program" | gzip -n -9 >"$dist/files/${program}_${version}_${name#*_}.tar.gz"
  rm -r "$folder"
done

echo "images"
image --revision "$revision" --binaries "$dist/programs" --platform "$platforms" --output "$dist/images"
cp "$dist"/images/*.spdx.json "$dist/files/"

echo "charts"
for chart in ${CHARTS-deploy/helm/*/Chart.yaml}; do
  [ -f "$chart" ] || continue
  "${HELM:-helm}" package "$(dirname "$chart")" --version "${version#v}" --app-version "${version#v}" --destination "$dist/files"
done

echo "checksums"
(cd "$dist/files" && sha256sum -- * >../SHA256SUMS && mv ../SHA256SUMS .)
for catalogue in krew=quaymaster.yaml formula=quaymaster.rb; do
  go run ./deploy/release "${catalogue%=*}" --version "$version" --checksums "$dist/files/SHA256SUMS" >"$dist/${catalogue#*=}"
done
