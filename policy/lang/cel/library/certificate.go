package library

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy/internal/certificate"
)

// exactBelow is the first integer that a double does not distinguish from the next one.
const exactBelow = 1 << 53

func certificateFunctions() []cel.EnvOption {
	return function("x509_decode_string", []*cel.Type{cel.StringType}, cel.DynType, text(decodeCertificate), "x509.decode")
}

// decodeCertificate returns a certificate or a certificate request. A serial number that a double
// would round is an error where an expression reads it: Kyverno keeps its last 64 bits, rounded.
func decodeCertificate(text string) (ref.Val, error) {
	if err := checkDocument(text); err != nil {
		return nil, err
	}
	object, err := certificate.Decode(text)
	if err != nil {
		return nil, err
	}
	if serial, ok := object["SerialNumber"].(float64); ok && (serial >= exactBelow || serial <= -exactBelow) {
		object["SerialNumber"] = types.NewErr("the serial number has more than 53 bits, and is not compared")
	}
	return types.DefaultTypeAdapter.NativeToValue(object), nil
}
