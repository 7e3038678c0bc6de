keys cosign
cat > values.yaml <<EOF
application:
  validators:
    - {name: allow, type: static, approve: true}
    - name: shop
      type: cosign
      trustRoots:
        - name: default
          key: |
$(sed 's/^/            /' cosign.pub)
  policy:
    - {pattern: "*:*", validator: shop}
    - {pattern: "registry.k8s.io/*:*", validator: allow}
EOF
mkdir -p ~/.config/notation/truststore/x509/ca/company
openssl req -x509 -newkey rsa:3072 -nodes -days 30 -keyout ca.key -subj "/C=DE/ST=Berlin/O=Company/CN=CA" \
  -out ~/.config/notation/truststore/x509/ca/company/ca.pem 2> openssl.log
cat > trustpolicy.json <<EOF
{"version": "1.0", "trustPolicies": [{"name": "company", "registryScopes": ["*"],
  "signatureVerification": {"level": "strict"}, "trustStores": ["ca:company"], "trustedIdentities": ["*"]}]}
EOF
cat > policy.json <<EOF
{"default": [{"type": "reject"}], "transports": {"docker": {"registry.example/shop":
  [{"type": "sigstoreSigned", "keyPath": "$PWD/cosign.pub"}]}}}
EOF
