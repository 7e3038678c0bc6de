package rego

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Decode reads JSON for Holds: with integers in their written form, which float64 holds
// only up to 2^53, and other numbers as float64.
func Decode(text []byte) (any, error) {
	var data any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&data); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the document")
	}
	return numbered(data)
}

// numbered writes the numbers of decoded JSON anew.
func numbered(data any) (_ any, err error) {
	switch data := data.(type) {
	case json.Number:
		text, err := plain(string(data))
		return json.Number(text), err
	case map[string]any:
		for name := range data {
			data[name], err = numbered(data[name])
			if err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range data {
			data[i], err = numbered(data[i])
			if err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

// plain writes a number without the zeros and exponents that OPA misreads (to it, 10.0
// is 1): an integer by its digits, and another number as encoding/json does.
func plain(text string) (string, error) {
	whole := text
	if before, after, _ := strings.Cut(text, "."); strings.Trim(after, "0") == "" {
		whole = before
	}
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return "", fmt.Errorf("%s is no number, or too large a one", strconv.Quote(shorten(text)))
	}
	if n, ok := new(big.Int).SetString(whole, 10); ok {
		return n.String(), nil
	}
	out, err := json.Marshal(f)
	return string(out), err
}
