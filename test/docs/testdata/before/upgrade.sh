helm upgrade --install quaymaster-crds deploy/helm/quaymaster-crds --namespace quaymaster --create-namespace > .before.log || cat .before.log
helm install quaymaster deploy/helm/quaymaster --namespace quaymaster > .before.log || cat .before.log
