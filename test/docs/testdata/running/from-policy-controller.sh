keys cosign
helm upgrade --install quaymaster-crds deploy/helm/quaymaster-crds --namespace quaymaster --create-namespace > .before.log
until kubectl wait --for=condition=Established crd --all > .before.log 2>&1; do sleep 0.2; done
jq -n --rawfile key cosign.pub '{apiVersion: "policy.sigstore.dev/v1beta1", kind: "ClusterImagePolicy", metadata: {name: "shadow-shop", labels: {quaymaster: "shadow"}},
  spec: {mode: "warn", images: [{glob: "'registry.example'/shop/**"}], authorities: [{name: "release", key: {data: $key}}]}}' > shadow.json
