keys cosign
image registry.example/shop/web:v1
sign cosign registry.example/shop/web:v1
image registry.example/shop/unsigned:v1
jq -n --rawfile key cosign.pub '{apiVersion: "policy.sigstore.dev/v1beta1", kind: "ClusterImagePolicy", metadata: {name: "shop", uid: "7"},
  spec: {images: [{glob: "'registry.example'/shop/**"}], authorities: [{name: "release", key: {data: $key}}]}}' > policy.json
