{
  helm upgrade --install quaymaster-crds deploy/helm/quaymaster-crds --namespace quaymaster --create-namespace
  until kubectl wait --for=condition=Established crd --all; do sleep 0.2; done
  kubectl apply -f - <<'EOF'
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: team}
spec:
  validationFailureAction: Enforce
  rules:
    - name: label
      match: {any: [{resources: {kinds: [Pod], namespaces: [default]}}]}
      validate: {message: name the team, pattern: {metadata: {labels: {team: "?*"}}}}
EOF
} > .before.log || cat .before.log
cat > pods.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {team: shop}}
spec: {containers: [{name: web, image: "registry.example/shop/web:v1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: unsigned}
spec: {containers: [{name: web, image: "registry.example/shop/web:v1"}]}
EOF
