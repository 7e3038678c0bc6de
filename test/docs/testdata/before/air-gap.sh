keys cosign
image registry.example/shop/web:v1
cosign sign --key cosign.key --use-signing-config=false --tlog-upload=false --new-bundle-format=false \
  "$(crane digest --insecure --full-ref registry.example/shop/web:v1)" > /dev/null 2>&1
