#!/bin/sh
# Verifies images in a CI system: gets quaymaster, runs "quaymaster verify", and exits
# with its status (docs/cli.md). The GitHub Action runs this file, the GitLab template
# has its text. All that it is told is in the environment and is never read as shell;
# lists have an entry on each line. docs/ci.md has a table of it.
set -eu

fail() { # STATUS WORDS...
  status=$1
  shift
  printf 'quaymaster: %s\n' "$*" >&2
  exit "$status"
}

newline='
'

# one and each print arguments, a line each; an empty value prints none.
one() { # FLAG VALUE
  case $2 in
  '') ;;
  *"$newline"*) fail 2 "$1 takes one value, and there are lines: $2" ;;
  *) printf '%s=%s\n' "$1" "$2" ;;
  esac
}
each() { # FLAG VALUES
  printf '%s\n' "$2" | while IFS= read -r value; do
    value=${value%"$(printf '\r')"}
    if [ -n "$value" ]; then printf '%s=%s\n' "$1" "$value"; fi
  done
}
flag() { # FLAG VALUE
  case $2 in
  true) printf '%s\n' "$1" ;;
  '' | false) ;;
  *) fail 2 "$1: want true or false, not $2" ;;
  esac
}

fetch() { # URL FILE
  if command -v curl >/dev/null; then
    # What is asked for by https is not redirected to anything less.
    case $1 in https://*) only==https ;; *) only==http,https ;; esac
    curl --proto "$only" --proto-redir "$only" --fail --silent --show-error --location --retry 3 --max-time 300 --output "$2" -- "$1"
  else
    wget -q -O "$2" "$1"
  fi
}

sum() { # FILE
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# install gets a release into a folder, and compares its checksum.
install() { # FOLDER
  version=${QUAYMASTER_CI_VERSION:-${QUAYMASTER_CI_ACTION_REF:-}}
  case $version in
  *[!0-9A-Za-z.+-]* | '') fail 2 "which release? Want a version such as v1.2.3, not '$version'" ;;
  v[0-9]*.[0-9]*.[0-9]*) ;;
  *) fail 2 "which release? Want a version such as v1.2.3, not '$version'" ;;
  esac
  case $(uname -s) in
  Linux) system=linux ;;
  Darwin) system=darwin ;;
  *) fail 2 "there is no release for $(uname -s); set QUAYMASTER_CI_BINARY" ;;
  esac
  case $(uname -m) in
  x86_64 | amd64) architecture=amd64 ;;
  aarch64 | arm64) architecture=arm64 ;;
  *) fail 2 "there is no release for $(uname -m); set QUAYMASTER_CI_BINARY" ;;
  esac
  archive=quaymaster_${version}_${system}_${architecture}.tar.gz
  downloads=${QUAYMASTER_CI_DOWNLOADS:-https://github.com/quaymaster/quaymaster/releases/download}/$version
  want=${QUAYMASTER_CI_SHA256:-}
  case $downloads in
  https://*) ;;
  *) if [ -z "$want" ]; then fail 2 "$downloads is not https, so that the checksum must be told: set sha256"; fi ;;
  esac
  fetch "$downloads/$archive" "$1/$archive" || fail 3 "cannot get $downloads/$archive"
  if [ -z "$want" ]; then
    fetch "$downloads/SHA256SUMS" "$1/SHA256SUMS" || fail 3 "cannot get $downloads/SHA256SUMS"
    want=$(awk -v name="$archive" '$2 == name { print $1 }' "$1/SHA256SUMS")
  fi
  got=$(sum "$1/$archive")
  if [ "$got" != "$want" ]; then fail 2 "$archive has the checksum $got and should have '$want': it is not run"; fi
  tar -xzf "$1/$archive" -C "$1" quaymaster
}

program=${QUAYMASTER_CI_BINARY:-}
if [ -z "$program" ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  install "$folder"
  program=$folder/quaymaster
fi

arguments=$(
  each --filename "${QUAYMASTER_CI_FILES:-}"
  each --policy "${QUAYMASTER_CI_POLICIES:-}"
  each --resource "${QUAYMASTER_CI_RESOURCES:-}"
  each --mirrors "${QUAYMASTER_CI_MIRRORS:-}"
  each --key "${QUAYMASTER_CI_KEYS:-}"
  each --attestation "${QUAYMASTER_CI_ATTESTATIONS:-}"
  each --plain-http "${QUAYMASTER_CI_PLAIN_HTTP:-}"
  one --certificate-identity "${QUAYMASTER_CI_CERTIFICATE_IDENTITY:-}"
  one --certificate-identity-regexp "${QUAYMASTER_CI_CERTIFICATE_IDENTITY_REGEXP:-}"
  one --certificate-oidc-issuer "${QUAYMASTER_CI_CERTIFICATE_OIDC_ISSUER:-}"
  one --certificate-oidc-issuer-regexp "${QUAYMASTER_CI_CERTIFICATE_OIDC_ISSUER_REGEXP:-}"
  one --notation-cert "${QUAYMASTER_CI_NOTATION_CERT:-}"
  one --trusted-root "${QUAYMASTER_CI_TRUSTED_ROOT:-}"
  one --registry-ca "${QUAYMASTER_CI_REGISTRY_CA:-}"
  one --namespace "${QUAYMASTER_CI_NAMESPACE:-}"
  one --timeout "${QUAYMASTER_CI_TIMEOUT:-}"
  flag --require-match "${QUAYMASTER_CI_REQUIRE_MATCH:-true}"
  flag --insecure-ignore-tlog "${QUAYMASTER_CI_INSECURE_IGNORE_TLOG:-}"
  flag --output=github "${QUAYMASTER_CI_ANNOTATIONS:-}"
  one --output=sarif "${QUAYMASTER_CI_SARIF:-}"
  one --output=junit "${QUAYMASTER_CI_JUNIT:-}"
  one --output=json "${QUAYMASTER_CI_JSON:-}"
  one --output=markdown "${QUAYMASTER_CI_MARKDOWN:-}"
)
set -- verify --output=text
while IFS= read -r argument; do
  if [ -n "$argument" ]; then set -- "$@" "$argument"; fi
done <<ARGUMENTS
$arguments
ARGUMENTS
set -- "$@" --
while IFS= read -r image; do
  image=${image%"$(printf '\r')"}
  if [ -n "$image" ]; then set -- "$@" "$image"; fi
done <<IMAGES
${QUAYMASTER_CI_IMAGES:-}
IMAGES

status=0
"$program" "$@" </dev/null || status=$?
if [ -n "${GITHUB_OUTPUT:-}" ]; then printf 'status=%s\n' "$status" >>"$GITHUB_OUTPUT"; fi
exit "$status"
