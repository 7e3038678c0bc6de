image registry.example/shop/web:v1
image registry.example/shop/unsigned:v1
