keys cosign
image registry.example/shop/web:v1
sign cosign registry.example/shop/web:v1
image registry.example/shop/unsigned:v1
crane copy --insecure registry.example/shop/web:v1 registry.inside/shop/web:v1 > /dev/null 2>&1
image registry.inside/other/app:v1
cat > policy.yaml <<EOF
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: ["registry.example/shop/*"]
          attestors:
            - entries:
                - keys:
                    publicKeys: |-
$(sed 's/^/                      /' cosign.pub)
                    rekor: {ignoreTlog: true}
EOF
