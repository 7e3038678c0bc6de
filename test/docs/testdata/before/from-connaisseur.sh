keys cosign
image registry.example/shop/web:v1
sign cosign registry.example/shop/web:v1
image registry.example/shop/unsigned:v1
image registry.inside/shop/web:v1
