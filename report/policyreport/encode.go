package policyreport

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Limits bound the parts of a report.
type Limits struct {
	// Results is the maximum number of results of a part; 0 means DefaultResults.
	Results int
	// Bytes is the maximum size of a part; 0 means DefaultBytes. At least MinBytes, at most
	// MaxBytes.
	Bytes int
}

func (l Limits) orDefault() (Limits, error) {
	if l.Results == 0 {
		l.Results = DefaultResults
	}
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	switch {
	case l.Results < 0:
		return l, fmt.Errorf("reports of %d results: want 1 or more", l.Results)
	case l.Bytes < MinBytes || l.Bytes > MaxBytes:
		return l, fmt.Errorf("reports of %d bytes: want %d to %d", l.Bytes, MinBytes, MaxBytes)
	}
	return l, nil
}

// Action is the operation on a part.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	// Delete: the report no longer has this part.
	Delete Action = "delete"
	// Keep: the visible content is unchanged.
	Keep Action = "keep"
)

// Part is one object of a report.
type Part struct {
	Namespace, Name string
	Action          Action
	// Version is the resourceVersion that was read; empty for a part to create.
	Version string
	// JSON is the object to store, with the resourceVersion for an update; nil for a part to
	// delete.
	JSON []byte
}

// errTooLarge: a report has more parts than MaxParts.
var errTooLarge = errors.New("the report is too large: choose another grouping, or have passes counted")

// Encode returns the parts of the report in an API. Parts to delete come last. An empty report
// has no parts.
func (r *Report) Encode(api API, limits Limits) ([]Part, error) {
	limits, err := limits.orDefault()
	if err != nil {
		return nil, err
	}
	pages, err := r.split(limits)
	if err != nil {
		return nil, fmt.Errorf("encode the report %s/%s: %w", r.place.Namespace, r.place.Name, err)
	}
	read := map[string]original{}
	for _, each := range r.read {
		if each.api == api {
			read[each.meta.Name] = each
		}
	}
	var parts []Part
	for i, page := range pages {
		part, err := r.part(api, page, i+1, len(pages), read)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
		delete(read, part.Name)
	}
	for _, each := range r.read {
		if _, gone := read[each.meta.Name]; gone {
			parts = append(parts, Part{Namespace: r.place.Namespace, Name: each.meta.Name, Action: Delete, Version: each.meta.ResourceVersion})
		}
	}
	return parts, nil
}

func (r *Report) part(api API, of page, number, parts int, read map[string]original) (Part, error) {
	object := r.object(of, number, parts)
	object.APIVersion, object.Kind = string(api), api.Kind(r.place.Namespace)
	part := Part{Namespace: r.place.Namespace, Name: object.Name, Action: Create}
	if before, ok := read[object.Name]; ok {
		before.keepIn(&object.ObjectMeta)
		part.Action, part.Version = Update, before.meta.ResourceVersion
		if essence(object) == before.essence {
			part.Action = Keep
		}
	}
	text, err := marshal(api, object)
	if err != nil {
		return Part{}, fmt.Errorf("encode the report %s/%s: %w", r.place.Namespace, object.Name, err)
	}
	part.JSON = text
	return part, nil
}

func marshal(api API, object PolicyReport) ([]byte, error) {
	if api == OpenReports {
		return json.Marshal(openReport(object))
	}
	return json.Marshal(object)
}
