mkdir app && cat > app/Chart.yaml <<'EOF'
{apiVersion: v2, name: app, version: 1.0.0}
EOF
mkdir app/templates && cat > app/templates/pod.yaml <<'EOF'
apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {containers: [{name: app, image: "registry.example/app:v1"}]}
EOF
TOKEN=$(kubectl -n ci create token builder --audience quaymaster --duration 10m)
# A refusal is no answer of this page.
curl() { command curl -sS --fail-with-body "$@"; }
