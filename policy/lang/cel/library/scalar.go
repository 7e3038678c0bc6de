package library

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// hashFunctions create names from texts, as policies use them; MD5 and SHA-1 are not used for
// security.
func hashFunctions() []cel.EnvOption {
	var options []cel.EnvOption
	for name, sum := range map[string]func([]byte) []byte{
		"sha1":   func(b []byte) []byte { s := sha1.Sum(b); return s[:] },
		"sha256": func(b []byte) []byte { s := sha256.Sum256(b); return s[:] },
		"md5":    func(b []byte) []byte { s := md5.Sum(b); return s[:] },
	} {
		binding := text(func(s string) (ref.Val, error) { return types.String(hex.EncodeToString(sum([]byte(s)))), nil })
		options = append(options, function(name+"_string", []*cel.Type{cel.StringType}, cel.StringType, binding, name, "hash."+name)...)
	}
	return options
}

func mathFunctions() []cel.EnvOption {
	return function("math_round_float_int", []*cel.Type{cel.DoubleType, cel.IntType}, cel.DoubleType, cel.BinaryBinding(round), "math.round")
}

// round keeps as many digits after the point, or with a negative number rounds
// those before it away.
func round(value, digits ref.Val) ref.Val {
	v, isDouble := value.(types.Double)
	places, isInt := digits.(types.Int)
	if !isDouble || !isInt {
		return types.NewErr("no such overload")
	}
	if places > maxDigits || places < -maxDigits {
		return types.NewErr("math.round: %d digits are not between -%d and %d", places, maxDigits, maxDigits)
	}
	shift := math.Pow(10, float64(places))
	rounded := math.Round(float64(v)*shift) / shift
	if math.IsInf(rounded, 0) {
		return v // so large that it has no such digits
	}
	return types.Double(rounded)
}

func timeFunctions() []cel.EnvOption {
	return append(
		function("time_to_cron", []*cel.Type{cel.TimestampType}, cel.StringType, cel.UnaryBinding(toCron), "time.toCron"),
		function("time_truncate", []*cel.Type{cel.TimestampType, cel.DurationType}, cel.TimestampType, cel.BinaryBinding(truncate), "time.truncate")...,
	)
}

func toCron(moment ref.Val) ref.Val {
	t, ok := moment.(types.Timestamp)
	if !ok {
		return types.MaybeNoSuchOverloadErr(moment)
	}
	return types.String(fmt.Sprintf("%d %d %d %d %d", t.Minute(), t.Hour(), t.Day(), int(t.Month()), int(t.Weekday())))
}

func truncate(moment, unit ref.Val) ref.Val {
	t, isTime := moment.(types.Timestamp)
	d, isDuration := unit.(types.Duration)
	if !isTime || !isDuration {
		return types.NewErr("no such overload")
	}
	return types.Timestamp{Time: t.Truncate(d.Duration)}
}
