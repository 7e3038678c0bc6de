package admission

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/workload"
)

// response is the response to one request.
type response struct {
	uid      string
	allowed  bool
	patch    []workload.Operation
	warnings []string
	// code, reason and message describe a denial.
	code            int
	reason, message string
	audit           audit
}

// denied denies a request.
func denied(message string) response {
	return response{code: 403, reason: "Forbidden", message: message}
}

// malformed denies an invalid request.
func malformed(message string) response {
	return response{code: 400, reason: "BadRequest", message: message}
}

// append encodes the review with the response.
func (r *response) append(b []byte) []byte {
	b = append(b, `{"kind":"AdmissionReview","apiVersion":"`+reviewVersion+`","response":{"uid":`...)
	b = quote(b, r.uid)
	b = append(b, `,"allowed":`...)
	b = strconv.AppendBool(b, r.allowed)
	if !r.allowed {
		b = append(b, `,"status":{"metadata":{},"status":"Failure","message":`...)
		b = quote(b, r.message)
		b = append(b, `,"reason":`...)
		b = quote(b, r.reason)
		b = append(b, `,"code":`...)
		b = strconv.AppendInt(b, int64(r.code), 10)
		b = append(b, '}')
	}
	if r.allowed && len(r.patch) > 0 {
		b = append(b, `,"patch":"`...)
		b = base64.StdEncoding.AppendEncode(b, appendPatch(make([]byte, 0, roomFor(r.patch)), r.patch))
		b = append(b, `","patchType":"JSONPatch"`...)
	}
	if r.audit.answer != "" {
		b = r.audit.append(b)
	}
	if len(r.warnings) > 0 {
		b = append(b, `,"warnings":[`...)
		for i, warning := range r.warnings {
			b = quote(separate(b, i), warning)
		}
		b = append(b, ']')
	}
	return append(b, `}}`...)
}

// roomFor estimates the length of a patch, in bytes.
func roomFor(operations []workload.Operation) int {
	const ofNames = 48
	room := 2
	for _, op := range operations {
		text, _ := op.Value.(string)
		room += ofNames + len(op.Path) + len(text) + len(text)/8
	}
	return room
}

// appendPatch encodes operations. Nearly all values are texts.
func appendPatch(b []byte, operations []workload.Operation) []byte {
	b = append(b, '[')
	for i, op := range operations {
		b = append(separate(b, i), `{"op":`...)
		b = quote(b, op.Op)
		b = append(b, `,"path":`...)
		b = quote(b, op.Path)
		switch value := op.Value.(type) {
		case string:
			b = quote(append(b, `,"value":`...), value)
		case nil:
			if op.Op != "remove" {
				b = append(b, `,"value":null`...)
			}
		default:
			encoded, err := json.Marshal(value)
			if err != nil {
				encoded = []byte("null") // the API server rejects it, except for a nullable field
			}
			b = append(append(b, `,"value":`...), encoded...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func separate(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// quote appends a text as JSON. Invalid UTF-8 becomes the replacement character.
func quote(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}
