package registrytest

// PutManifest stores a manifest without a request, under a tag or digest. It
// panics on a body that is no JSON or has another digest: it is for tests.
func (r *Registry) PutManifest(repository, reference, mediaType string, body []byte) Descriptor {
	digest, _, err := r.store.putManifest(repository, reference, mediaType, body)
	if err != nil {
		panic("registrytest: " + err.Error())
	}
	return Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(body))}
}

// PutBlob stores a blob without a request.
func (r *Registry) PutBlob(repository, mediaType string, body []byte) Descriptor {
	digest := DigestOf(body)
	if err := r.store.putBlob(repository, digest, body); err != nil {
		panic("registrytest: " + err.Error())
	}
	return Descriptor{MediaType: mediaType, Digest: digest, Size: int64(len(body))}
}

// written is an OCI image manifest as this package writes it.
type written struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Subject       *Descriptor       `json:"subject,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// PutImage stores a one-layer image without a request; content makes its
// digest.
func (r *Registry) PutImage(repository, tag, content string) Descriptor {
	config := r.PutBlob(repository, mediaTypeConfig, []byte(`{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}`))
	layer := r.PutBlob(repository, mediaTypeLayer, []byte(content))
	body := mustJSON(written{SchemaVersion: 2, MediaType: mediaTypeManifest, Config: config, Layers: []Descriptor{layer}})
	return r.PutManifest(repository, tag, mediaTypeManifest, body)
}

// PutIndex stores an index of manifests without a request, under a tag or
// digest.
func (r *Registry) PutIndex(repository, reference string, manifests ...Descriptor) Descriptor {
	return r.PutManifest(repository, reference, mediaTypeIndex, mustJSON(newIndex(manifests)))
}

// PutReferrer stores an artifact with one layer that names subject, without a
// request; where the registry has no referrers API, it keeps the referrers tag
// as a client would.
func (r *Registry) PutReferrer(repository string, subject Descriptor, artifactType string, payload []byte) Descriptor {
	empty := r.PutBlob(repository, mediaTypeEmpty, []byte("{}"))
	layer := r.PutBlob(repository, artifactType, payload)
	body := mustJSON(written{
		SchemaVersion: 2, MediaType: mediaTypeManifest, ArtifactType: artifactType,
		Config: empty, Layers: []Descriptor{layer}, Subject: &subject,
	})
	descriptor := r.PutManifest(repository, DigestOf(body), mediaTypeManifest, body)
	descriptor.ArtifactType = artifactType
	r.KeepReferrersTag(repository, subject.Digest)
	return descriptor
}

// KeepReferrersTag writes the referrers tag of a manifest as a client would after a push,
// where the registry has no referrers API; else it does nothing.
func (r *Registry) KeepReferrersTag(repository, subject string) {
	if r.options.NoReferrers {
		r.PutIndex(repository, referrersTag(subject), r.store.referrers(repository, subject)...)
	}
}

// Retag points a tag at a manifest that is stored, without a request.
func (r *Registry) Retag(repository, tag, digest string) {
	found, _, ok := r.store.manifest(repository, digest)
	if !ok {
		panic("registrytest: retag: there is no manifest " + digest)
	}
	r.PutManifest(repository, tag, found.mediaType, found.body)
}

// Delete removes a tag or manifest without a request.
func (r *Registry) Delete(repository, reference string) {
	r.store.deleteManifest(repository, reference)
}

// referrersTag is the tag that replaces the referrers API.
func referrersTag(digest string) string {
	tag := []byte(digest)
	for i := range tag {
		if tag[i] == ':' {
			tag[i] = '-'
		}
	}
	return string(tag)
}
