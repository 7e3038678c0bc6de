cp policy.yaml audit.yaml
