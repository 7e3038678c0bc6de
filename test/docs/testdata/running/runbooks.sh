# While nothing fails, a log mostly does not have the lines of a runbook; a metric is there,
# but for those of broken policies and of sinks, which this gateway has not.
grep() {
  case $* in
  *^quaymaster_policy_broken* | *^quaymaster_decision_log_sink*) command grep "$@" || [ $? = 1 ] ;;
  *^quaymaster*) command grep "$@" ;;
  *) command grep "$@" || [ $? = 1 ] ;;
  esac
}
kind metrics.k8s.io v1beta1 pods PodMetrics
kind cert-manager.io v1 certificates Certificate
kind cert-manager.io v1 certificaterequests CertificateRequest
kubectl -n quaymaster get pods -l app.kubernetes.io/name=quaymaster -o name | sed 's/^pod.//' | while read -r name; do
  kubectl apply -f - > .before.log <<EOF
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: $name, namespace: quaymaster}
timestamp: 2026-01-01T00:00:00Z
window: 15s
containers: [{name: gateway, usage: {cpu: 10m, memory: 64Mi}}]
EOF
done
echo '{"objectRef": {"resource": "validatingwebhookconfigurations"}, "verb": "delete", "stageTimestamp": "2026-01-01T00:00:00Z", "user": {"username": "somebody"}}' > audit.log
echo '{"certificateAuthorities": [{"validFor": {}}], "tlogs": [{"publicKey": {"validFor": {}}}]}' > trusted_root.json
