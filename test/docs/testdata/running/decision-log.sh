if kubectl -n shop run denied --image registry.example/shop/unsigned:v1 > .before.log 2>&1; then cat .before.log; exit 1; fi
true
