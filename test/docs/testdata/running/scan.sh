rm deploy && mkdir deploy policies && cp policy.yaml policies/ && cp policy.yaml new-policy.yaml
kubectl create deployment web --image registry.example/app:v1 --dry-run=client -o yaml > deploy/web.yaml
kind tekton.dev v1 tasks Task
