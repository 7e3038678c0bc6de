helm install quaymaster-crds deploy/helm/quaymaster-crds --namespace quaymaster --create-namespace

until kubectl wait --for=condition=Established crd --all; do sleep 0.2; done

kubectl -n quaymaster run quaymaster-0 --image "$(helm template quaymaster deploy/helm/quaymaster --namespace quaymaster | sed -n 's/^ *image: *//p' | tr -d '"' | head -n 1)"

helm install quaymaster deploy/helm/quaymaster --namespace quaymaster -f values.yaml

keys cosign && image registry.example/app:v1 && sign cosign registry.example/app:v1 && image registry.example/shop/unsigned:v1

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
        - imageReferences: ["registry.example/*"]
          attestors:
            - entries:
                - keys:
                    publicKeys: |-
$(sed 's/^/                      /' cosign.pub)
                    rekor: {ignoreTlog: true}
EOF

kubectl apply -f policy.yaml

kubectl create deployment web -n shop --image registry.example/app:v1

kubectl create namespace ci && kubectl -n ci create serviceaccount builder

kubectl -n quaymaster get secret quaymaster-certificate -o jsonpath='{.data.ca\.crt}' | base64 -d > ca.crt

kubectl -n quaymaster get secret quaymaster-certificate -o jsonpath='{.data.decision-log\.pub}' | base64 -d > decision-log.pub
