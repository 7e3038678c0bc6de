mkdir policies && cat > policies/labels.yaml <<'EOF'
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: labels}
spec:
  rules:
    - name: team
      match: {any: [{resources: {kinds: [Pod], namespaces: [nowhere]}}]}
      validate: {message: name the team, pattern: {metadata: {labels: {team: "?*"}}}}
EOF
