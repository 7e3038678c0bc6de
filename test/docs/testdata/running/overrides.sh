image registry.example/ledger/api:2.1
mkdir policies && cp policy.yaml policies/
# bad-day.yaml is the page's own, with a time to come and the registry that there is.
host=registry.example
{
  echo 'apiVersion: quaymaster.dev/v1alpha1'
  echo 'kind: ImageOverride'
  sed -n '/inc-2292-ledger}/,/^```/p' "$CHECKOUT/docs/overrides.md" |
    sed '/^```/,$d; s|registry[.]example|'"$host"'|; s/expires:.*/expires: '"$(date -u -d '+30 days' +%Y-%m-%dT%H:%M:%SZ)/"
} > bad-day.yaml
