#!/usr/bin/env bash
# Publishes what build.sh built:
#
#   deploy/release/publish.sh push      images and charts, by digest: no tag
#   deploy/release/publish.sh sign      cosign, notation, provenance, bills of materials
#   deploy/release/publish.sh checksums adds notation's root to SHA256SUMS, signs the list
#                                       and attests its provenance, in two files beside it
#   deploy/release/publish.sh promote   verifies all of it with quaymaster, then tags
#
# What cannot be verified is not tagged, and so nobody finds it. Each step may be run
# again. Told by the environment:
#
#   VERSION, DIST, REGISTRY      v1.2.3, build.sh's folder, registry and path
#   PROVENANCE                   the predicate that deploy/release made
#   COSIGN, CRANE, QUAYMASTER    programs; cosign is of release 3
#   IMAGE, NOTARIZE              programs of deploy/image
#   CERTIFICATE_IDENTITY, CERTIFICATE_OIDC_ISSUER   who signs, without a key
#   COSIGN_KEY, COSIGN_PUBLIC_KEY                   or the key that does
#   NOTATION_KEY, NOTATION_CHAIN, NOTATION_ROOT     notation's key and certificates
set -euo pipefail

: "${VERSION:?}" "${DIST:?}" "${REGISTRY:?}"
pushed=$DIST/pushed # lines of NAME REFERENCE@DIGEST; images before charts

push() {
  "${IMAGE:?}" --from "$DIST/images" --push "$REGISTRY" >"$pushed.new"
  for chart in "$DIST"/files/*.tgz; do
    [ -f "$chart" ] || continue
    reference=$("$IMAGE" --chart "$chart" --push "$REGISTRY/charts")
    printf 'chart %s\n' "$reference" >>"$pushed.new"
  done
  mv "$pushed.new" "$pushed"
  cat "$pushed"
}

by=()
if [ -n "${COSIGN_KEY:-}" ]; then by=(--key "$COSIGN_KEY" --use-signing-config=false --tlog-upload=false); fi

checksums() {
  local sums=$DIST/files/SHA256SUMS
  # The root of trust for notation's signatures is a download like the programs.
  install -m 0644 "${NOTATION_ROOT:?}" "$DIST/files/notation-root.pem"
  (cd "$DIST/files" && sed -i '/  notation-root\.pem$/d' SHA256SUMS && sha256sum -- notation-root.pem >>SHA256SUMS &&
    sha256sum --check --strict --quiet SHA256SUMS)
  "${COSIGN:?}" sign-blob --yes "${by[@]}" --bundle "$sums.sigstore.json" "$sums"
  "$COSIGN" attest-blob --yes "${by[@]}" --type slsaprovenance1 --predicate "${PROVENANCE:?}" --bundle "$sums.provenance.sigstore.json" "$sums"
}

sign() {
  while read -r name reference; do
    "${COSIGN:?}" sign --yes "${by[@]}" "$reference"
    "${NOTARIZE:?}" --key "${NOTATION_KEY:?}" --chain "${NOTATION_CHAIN:?}" "$reference"
    "$COSIGN" attest --yes "${by[@]}" --type slsaprovenance1 --predicate "${PROVENANCE:?}" "$reference"
    if [ "$name" != chart ]; then
      "$COSIGN" attest --yes "${by[@]}" --type spdxjson --predicate "$DIST/images/$name.spdx.json" "$reference"
    fi
  done <"$pushed"
}

# verified asks quaymaster what a cluster's policy would ask.
verified() { # NAME REFERENCE
  local who=(--certificate-identity "${CERTIFICATE_IDENTITY:-}" --certificate-oidc-issuer "${CERTIFICATE_OIDC_ISSUER:-}")
  if [ -n "${COSIGN_PUBLIC_KEY:-}" ]; then who=(--key "$COSIGN_PUBLIC_KEY" --insecure-ignore-tlog); fi
  "${QUAYMASTER:?}" verify "${who[@]}" "$2" &&
    "$QUAYMASTER" verify --notation-cert "${NOTATION_ROOT:?}" "$2" &&
    "$QUAYMASTER" verify "${who[@]}" --attestation slsaprovenance1 "$2" || return
  if [ "$1" != chart ]; then "$QUAYMASTER" verify "${who[@]}" --attestation spdxjson "$2"; fi
}

# same refuses a list of references that are not the ones of build.sh's images.
same() { # NAME REFERENCE
  [ "$1" = chart ] || grep -q "\"digest\": *\"${2##*@}\"" "$DIST/images/$1/index.json"
}

promote() {
  while read -r name reference; do
    same "$name" "$reference" || { echo "publish.sh: $reference is not what was built; nothing is tagged" >&2; exit 1; }
    verified "$name" "$reference" || { echo "publish.sh: $reference cannot be verified; nothing is tagged" >&2; exit 1; }
  done <"$pushed"
  while read -r name reference; do
    tag=$VERSION
    if [ "$name" = chart ]; then tag=${VERSION#v}; fi
    "${CRANE:?}" tag "$reference" "$tag"
    echo "${reference%@*}:$tag ${reference##*@}"
  done <"$pushed"
}

case ${1:-} in
push | sign | checksums | promote) "$1" ;;
*)
  echo "publish.sh: want push, sign, checksums or promote" >&2
  exit 2
  ;;
esac
