package controlplane

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Stored is what etcd keeps of one object.
type Stored struct {
	Key string
	// Bytes is the size of the value.
	Bytes int
	// Writes is how often it was written since it was created, that included, and
	// Revision when it was the last time.
	Writes, Revision int64
}

// Stored returns what etcd keeps under a prefix, such as /registry/pods/shop/, by key.
func (c *ControlPlane) Stored(ctx context.Context, prefix string) ([]Stored, error) {
	end := []byte(prefix)
	end[len(end)-1]++
	body, err := json.Marshal(map[string]any{"key": []byte(prefix), "range_end": end})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.data+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("ask etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask etcd: %s: %s", response.Status, text)
	}
	var answer struct {
		Entries []struct {
			Key      []byte `json:"key"`
			Value    string `json:"value"`
			Version  int64  `json:"version,string"`
			Revision int64  `json:"mod_revision,string"`
		} `json:"kvs"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("what etcd answers: %w", err)
	}
	all := make([]Stored, len(answer.Entries))
	for i, e := range answer.Entries {
		value, err := base64.StdEncoding.DecodeString(e.Value)
		if err != nil {
			return nil, fmt.Errorf("what etcd answers: %w", err)
		}
		all[i] = Stored{Key: string(e.Key), Bytes: len(value), Writes: e.Version, Revision: e.Revision}
	}
	return all, nil
}
