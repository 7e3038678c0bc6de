package distribution
import (
 "testing"
 "github.com/notaryproject/notation-go"
 "github.com/notaryproject/notation-go/signer"
 "github.com/notaryproject/notation-go/registry"
 "oras.land/oras-go/v2/registry/remote"
 "github.com/go-jose/go-jose/v4"
)
var _ = notation.Sign
var _ = signer.NewGenericSigner
var _ = registry.NewRepository
var _ remote.Repository
var _ jose.Signer
func TestX(t *testing.T){}
