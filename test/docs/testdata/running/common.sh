# Functions for what pages take as given, in a cluster.

# kind GROUP VERSION PLURAL KIND is one that others bring.
kind() {
  kubectl apply -f - > .before.log <<EOF
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $3.$1, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: $1
  scope: Namespaced
  names: {plural: $3, singular: ${4,,}, kind: $4, listKind: $4List}
  versions:
    - name: $2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
EOF
  until kubectl get "$3.$1" > .before.log 2>&1; do sleep 0.2; done
}
