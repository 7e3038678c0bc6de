keys cosign
image registry.example/shop/web:v1
sign cosign registry.example/shop/web:v1
mkdir policies manifests tests
cat > policies/signed.yaml <<EOF
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
cat > policies/labels.yaml <<EOF
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  validationFailureAction: Enforce
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod]}}]}
      validate: {message: name the team, pattern: {metadata: {labels: {team: "?*"}}}}
EOF
cat > tests/kyverno-test.yaml <<EOF
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: labels}
policies: [../policies/labels.yaml]
resources: [../manifests/web.yaml]
results:
  - {policy: labels, rule: team, resources: [web], kind: Pod, result: pass}
EOF
cat > manifests/web.yaml <<EOF
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {team: shop}}
spec: {containers: [{name: web, image: "registry.example/shop/web:v1"}]}
EOF
mkdir overlay
cp manifests/web.yaml overlay/web.yaml
printf 'resources: [web.yaml]\n' > overlay/kustomization.yaml
